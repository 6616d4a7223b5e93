#include <cxxabi.h>
#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <typeinfo>

#include "base/error.hpp"
#include "muster/worker/permanent_error.hpp"
#include "muster/worker/worker.hpp"
#include "worker_sdk/src/error_file.hpp"

namespace muster::worker {
namespace {

std::string readable_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? name.get() : type.name();
}

std::int64_t unix_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

void write_error_file(const char* path, const std::string& text) {
  std::FILE* file = std::fopen(path, "we");
  const bool written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int write_error = errno;
  const bool closed = file && std::fclose(file) == 0;
  if (!written || !closed)
    fmt::print(stderr, "{}\n", errno_error(path, written ? errno : write_error, "no error file").sentence());
}

enum class TryingAgain { may_help, is_useless };

/// The lines of a text one after the other in one.
std::string one_line(const std::string& text) {
  std::string line;
  bool at_break = false;
  for (const char letter : text) {
    const bool is_break = letter == '\n' || letter == '\r';
    if (!is_break && at_break && !line.empty()) line += "; ";
    if (!is_break) line += letter;
    at_break = is_break;
  }
  return line;
}

/// `what` stands in the error file as it is.
void report(const std::string& type, const std::string& what, TryingAgain trying_again) {
  const bool permanent = trying_again == TryingAgain::is_useless;
  const char* rank = std::getenv("RANK");
  fmt::print(stderr, "rank {}: {}\n", rank ? rank : "0", one_line(what));
  const char* path = std::getenv("TORCHELASTIC_ERROR_FILE");
  if (path && *path) write_error_file(path, error_json(type, what, unix_seconds(), permanent));
}

void report(const std::exception& error, TryingAgain trying_again) {
  report(readable_name(typeid(error)), error.what(), trying_again);
}

}  // namespace

int run_main(int (*body)(int, char**), int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a limit of file sizes is an error of the write, told with the file's name
  try {
    return body(argc, argv);
  } catch (const std::invalid_argument& error) {
    report(error, TryingAgain::is_useless);
    return 2;
  } catch (const PermanentError& error) {
    report(error, TryingAgain::is_useless);
    return 1;
  } catch (const std::exception& error) {
    report(error, TryingAgain::may_help);
    return 1;
  } catch (const abi::__forced_unwind&) {  // the thread is being cancelled: that is no error and must go on
    throw;
  } catch (...) {
    const auto* type = abi::__cxa_current_exception_type();
    const auto name = type ? readable_name(*type) : std::string("something");
    report(name, fmt::format("a thrown {}, which is no std::exception and says nothing more", name),
           TryingAgain::may_help);
    return 1;
  }
}

}  // namespace muster::worker
