#include "launcher/target.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "launcher/program_header.hpp"
#include "launcher/python_program.hpp"
#include "launcher/text.hpp"

namespace muster::launcher {

namespace {

enum class Need { execute, read };

// 0 if the file can be executed (read), else why not.
int check_file(const std::string& path, Need need) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return errno;
  if (S_ISDIR(info.st_mode)) return EISDIR;
  if (need == Need::execute && !S_ISREG(info.st_mode))
    return EACCES;  // as the kernel says; to look into it may block
  return ::access(path.c_str(), need == Need::execute ? X_OK : R_OK) == 0 ? 0 : errno;
}

bool has_slash(const std::string& name) { return name.find('/') != std::string::npos; }

Result<std::string> found_file(const std::string& path) { return {boost::system::in_place_value, path}; }

// The first executable file of that name; else the error of the best candidate.
Result<std::string> find_on_path(const std::string& name, const Environment& environment) {
  std::istringstream folders(environment("PATH").value_or("/usr/local/bin:/usr/bin:/bin"));
  int error = ENOENT;
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string path = (folder.empty() ? "." : folder) + "/" + name;
    const int found = check_file(path, Need::execute);
    if (found == 0) return found_file(path);
    if (found != ENOENT && found != ENOTDIR && found != EISDIR) error = found;
  }
  return errno_error(name, error, "it was looked for on PATH");
}

Result<std::string> find_executable(const std::string& name, const Environment& environment) {
  if (!has_slash(name)) return find_on_path(name, environment);
  if (const int error = check_file(name, Need::execute)) return errno_error(name, error);
  return found_file(name);
}

struct Python {
  std::string path;
  std::string why;
};

Result<Python> find_python(const Environment& environment) {
  if (const auto named = environment("PYTHON_EXEC"); named && !named->empty()) {
    const auto path = find_executable(*named, environment);
    if (!path)
      return errno_error("PYTHON_EXEC=" + *named, path.error().error_number,
                         "no Python to run the program with");
    return Python{*path, "PYTHON_EXEC names it"};
  }
  if (const auto folder = environment("VIRTUAL_ENV"); folder && !folder->empty()) {
    const std::string path = *folder + "/bin/python";
    if (check_file(path, Need::execute) == 0) return Python{path, "VIRTUAL_ENV is active"};
  }
  for (const char* name : {"python3", "python"})
    if (const auto path = find_on_path(name, environment)) return Python{*path, "found on PATH"};
  return errno_error("python3", ENOENT, "it was looked for on PATH; name an interpreter with PYTHON_EXEC");
}

Result<Target> with_python(std::vector<std::string> words, const Environment& environment) {
  const auto python = find_python(environment);
  if (!python) return python.error();
  words.insert(words.begin(), {python->path, "-u"});
  return Target{std::move(words), python->why, python->path};
}

// "hello" for hello.py, "pkg.sub.run" for ./pkg/sub/run.py; empty for what lies elsewhere.
std::string module_of(const std::string& path) {
  std::string name = std::filesystem::path(path).lexically_normal().string();
  if (name.starts_with('/') || name.starts_with("..")) return "";
  if (name.ends_with(".py")) name.resize(name.size() - 3);
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

Error file_as_module(const std::string& name) {
  const std::string module = module_of(name);
  return {"-m " + name, "-m takes the name of a module, not of a file",
          "leave out -m to run the file" + (module.empty() ? "" : ", or write -m " + module), ENOENT};
}

// What "#!" in the first line of a script says, a carriage return at its end included; empty: it is no script.
std::string first_line_of_script(const std::string& path) {
  constexpr std::size_t kKernelReads = 256;
  std::ifstream file(path, std::ios::binary);
  std::string line(kKernelReads, '\0');
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<std::size_t>(file.gcount()));
  if (!line.starts_with("#!")) return "";
  return trimmed(line.substr(2, line.find('\n') - 2));
}

// The interpreter and what follows it, as the kernel parts them: a carriage return belongs to its word.
std::pair<std::string, std::string> parted(const std::string& line) {
  const auto end = std::min(line.find_first_of(" \t"), line.size());
  return {line.substr(0, end), trimmed(line.substr(end))};
}

Error missing_interpreter(const std::string& path, const std::string& name, int error,
                          const char* else_next) {
  if (!name.ends_with('\r'))
    return errno_error(fmt::format("{} is to be run by {}", path, name), error, else_next);
  return errno_error(fmt::format("{} is to be run by '{}\\r'", path, name.substr(0, name.size() - 1)), error,
                     "its lines end as on Windows, with a carriage return: turn them into Unix lines");
}

// The interpreter must be there; "env NAME" is looked through.
Result<void> check_interpreter(const std::string& path, const Environment& environment) {
  const auto [interpreter, argument] = parted(first_line_of_script(path));
  if (interpreter.empty()) return {};
  if (const int error = check_file(interpreter, Need::execute))
    return missing_interpreter(path, interpreter, error, "mend the script's first line, or install it");
  const std::string name = parted(argument).first;
  if (!interpreter.ends_with("/env") || name.empty() || name.front() == '-' ||
      name.find('=') != std::string::npos)
    return {};
  if (const auto found = find_executable(name, environment); !found)
    return missing_interpreter(path, name, found.error().error_number,
                               "it was looked for on PATH, as the script's first line asks");
  return {};
}

// The kernel runs more than scripts and programs only where an interpreter is registered for it.
bool other_formats_are_registered() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/sys/fs/binfmt_misc", error))
    if (entry.path().filename() != "register" && entry.path().filename() != "status") return true;
  return false;
}

Result<void> check_program(const std::string& path, const ProgramHeader& header) {
  if (header.cut_short)
    return errno_error(path, ENOEXEC,
                       "the file ends before what its header says is in it: copy or build it again");
  if (!runs_here(header.machine))
    return errno_error(
        path, ENOEXEC,
        fmt::format("it was built for {}, which this machine is not", machine_name(header.machine)));
  if (header.interpreter.empty()) return {};
  if (const int error = check_file(header.interpreter, Need::execute))
    return errno_error(fmt::format("{} is to be loaded by {}", path, header.interpreter), error,
                       "it was built for another system, or its C library is not installed here");
  return {};
}

// What cannot be read, only executed, is judged by the kernel alone; so are formats that are registered with it.
Result<void> check_format(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file || other_formats_are_registered()) return {};
  if (const auto header = read_program_header(file)) return check_program(path, *header);
  std::string begin(2, '\0');
  file.clear();
  file.seekg(0);
  file.read(begin.data(), 2);
  if (begin == "#!") return {};
  return errno_error(path, ENOEXEC,
                     "it is neither a program nor a script whose first line names its interpreter, as "
                     "#!/bin/bash does");
}

Result<Target> direct(const LauncherOptions& options, const std::string& path, const std::string& why,
                      const Environment& environment) {
  if (const auto checked = check_format(path); !checked) return checked.error();
  if (const auto checked = check_interpreter(path, environment); !checked) return checked.error();
  std::vector<std::string> command = options.program;
  command[0] = path;
  return Target{std::move(command), why};
}

// For Python a name that begins with a hyphen would be an option.
Result<Target> script(const LauncherOptions& options, const Environment& environment) {
  std::vector<std::string> words = options.program;
  if (words[0].starts_with('-')) words[0] = "./" + words[0];
  return with_python(std::move(words), environment);
}

Result<Target> module(const LauncherOptions& options, const Environment& environment) {
  const std::string& name = options.program[0];
  std::error_code error;
  const bool is_file = name.ends_with(".py") && std::filesystem::is_regular_file(name, error);
  // "hello.py" may be the module py of the package hello.
  const bool is_package = std::filesystem::is_directory(name.substr(0, name.find('.')), error);
  if (has_slash(name) || (is_file && !is_package)) return file_as_module(name);
  std::vector<std::string> words = options.program;
  words.insert(words.begin(), "-m");
  return with_python(std::move(words), environment);
}

// As errno_error(), with what to do where that is known.
Error cannot_run(const std::string& name, int error, const LauncherOptions& options) {
  struct stat info {};
  const bool known = ::stat(name.c_str(), &info) == 0;
  if (error == EISDIR)
    return errno_error(name, error,
                       "Python runs a folder if it has a __main__.py: name that, or the program in it");
  if (error != EACCES || !known || !S_ISREG(info.st_mode)) return errno_error(name, error);
  const std::string make_it = fmt::format("`chmod +x {}` makes it a program", name);
  return errno_error(
      name, error,
      options.no_python ? make_it : make_it + fmt::format("; `--run-path {}` runs it with Python", name));
}

}  // namespace

Result<Target> find_target(const LauncherOptions& options, const Environment& environment) {
  const std::string& name = options.program.at(0);
  if (options.module) return module(options, environment);
  if (options.no_python) {
    const auto path = find_executable(name, environment);
    if (!path) return has_slash(name) ? cannot_run(name, path.error().error_number, options) : path.error();
    return direct(options, *path, has_slash(name) ? "as given" : "found on PATH", environment);
  }
  if (is_python_folder(name) || is_python_archive(name)) return script(options, environment);
  if (options.run_path || name.ends_with(".py")) {
    const int error = check_file(name, Need::read);
    if (error == EISDIR) return cannot_run(name, error, options);
    if (error != 0) return errno_error(name, error);
    return script(options, environment);
  }
  const int error = check_file(name, Need::execute);
  if (error == 0) return direct(options, has_slash(name) ? name : "./" + name, "as given", environment);
  if (!has_slash(name)) {
    const auto path = find_on_path(name, environment);
    if (path) return direct(options, *path, "found on PATH", environment);
    if (error == ENOENT) return path.error();
  }
  return cannot_run(name, error, options);
}

int exit_code_of_missing_target(const Error& error) {
  return error.error_number == ENOENT || error.error_number == ENOTDIR ? 127 : 126;
}

}  // namespace muster::launcher
