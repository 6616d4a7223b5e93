#include "agent/report/advice.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <sstream>
#include <string_view>

#include "agent/report/oom_evidence.hpp"
#include "agent/report/screen_parts.hpp"
#include "agent/report/traceback.hpp"

namespace muster::agent {

namespace {

using rendezvous::WorkerFailure;

constexpr std::size_t kMaxErrorBytes = 120;  // of an exception's text in the headline
constexpr int kPythonsCode = 1;              // of a Python that an exception ended

// Faults that a worker names itself as the last thing it says.
struct KnownFault {
  std::string_view text;
  int exit_code;  ///< of a program that dies of it; -1: any
  std::string_view guess;
  std::string_view next;  ///< empty: see where it said so
  std::string_view more;
};

constexpr std::array kKnownFaults = {
    // Python's answer to `-m hello.py`, which has "ModuleNotFoundError" in it.
    KnownFault{"as the module name.", kPythonsCode, ", -m takes the name of a module, not of a file",
               "leave out .py, or leave out -m",
               "write -m pkg.run for pkg/run.py, or leave out -m to run the file; restarting cannot help"},
    KnownFault{
        "ModuleNotFoundError", kPythonsCode, ", a Python module is missing",
        "install it for the interpreter in use",
        "activate the virtual environment that has the module, or name its interpreter with PYTHON_EXEC; "
        "restarting cannot help"},
    KnownFault{"ImportError", kPythonsCode, ", an import failed", "",
               "the module or a library it needs does not fit this interpreter; restarting cannot help"},
    KnownFault{"error while loading shared libraries", 127, ", a shared library is missing", "",
               "install the library, or name its folder in LD_LIBRARY_PATH"},
    KnownFault{"can't open file", 2, ", its script was not found", "check the script's path",
               "a relative path counts from the folder in which muster was started"},
    KnownFault{"CUDA out of memory", -1, ", its GPU is out of memory", "lower the batch size",
               "lower the batch size or the model's size, or see with nvidia-smi who else uses the GPU"},
    KnownFault{"Address already in use", -1, ", a port is taken", "",
               "something else listens on the port; let the program use MASTER_PORT, or a port of 0"},
};

bool exited_with(const WorkerFailure& failure, int code) {
  return failure.cause.kind == ExitCause::Kind::exited && failure.cause.value == code;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// From its error file, which has all of it, or else from its last lines. There an exception that it handled stands too:
// one that ended a Python makes it exit with 1 and is the last that it tells.
std::optional<Traceback> traceback_of(const WorkerFailure& failure) {
  if (auto found = find_traceback(lines_of(failure.message))) return found;
  if (!failure.message.empty() || !exited_with(failure, kPythonsCode)) return std::nullopt;
  auto found = find_traceback(failure.last_lines);
  return found && found->last ? found : std::nullopt;
}

// C++ tells what ended it before it aborts.
std::string words_before_abort(const WorkerFailure& failure) {
  std::string words;
  for (const std::string& line : failure.last_lines) {
    if (line.starts_with("terminate called")) words.clear();
    if (!words.empty() || line.starts_with("terminate called")) words += line + "\n";
  }
  return words;
}

// What it said of its end; empty: nothing that is known to be of its end. What it only lived through is left out.
std::string last_words(const WorkerFailure& failure) {
  if (const auto traceback = traceback_of(failure)) return traceback->error;
  if (!failure.message.empty()) return failure.message;
  if (failure.cause.kind == ExitCause::Kind::signalled)
    return failure.cause.value == SIGABRT ? words_before_abort(failure) : "";
  const auto told = find_traceback(failure.last_lines);
  if (told && told->last) return "";  // it exited by its own will after that
  const auto& lines = failure.last_lines;
  const auto line = std::find_if(lines.rbegin(), lines.rend(), [](const std::string& text) {
    return text.find_first_not_of(" \t\r") != std::string::npos;
  });
  return line == lines.rend() ? "" : *line;
}

bool is_fault(const KnownFault& fault, const WorkerFailure& failure, const std::string& words) {
  const bool fits = fault.exit_code < 0 || !failure.message.empty() ||
                    exited_with(failure, fault.exit_code) || failure.cause.kind == ExitCause::Kind::signalled;
  return fits && words.find(fault.text) != std::string::npos;
}

// "torch" of "No module named 'torch'".
std::string missing_module(const std::string& words) {
  constexpr std::string_view before = "No module named '";
  const auto at = words.rfind(before);
  if (at == std::string::npos) return "";
  const auto begin = at + before.size();
  return words.substr(begin, words.find('\'', begin) - begin);
}

Advice by_missing_module(const std::string& words, const std::string& python) {
  const std::string module = missing_module(words);
  return Advice{
      module.empty() ? ", a Python module is missing" : fmt::format(", module {} is missing", module),
      "install it for " + python,
      fmt::format("install it for {}, which ran the program, or activate the virtual environment that has "
                  "it, or name another interpreter with PYTHON_EXEC",
                  python)};
}

// Where it said something: "its last lines", "its error file"; empty: nowhere.
std::string place_of_words(const WorkerFailure& failure) {
  if (!failure.last_lines.empty()) return "its last lines";
  return failure.message.empty() ? "" : "its error file";
}

std::optional<Advice> by_known_fault(const WorkerFailure& failure, const std::string& python) {
  const std::string words = last_words(failure);
  for (const KnownFault& fault : kKnownFaults) {
    if (!is_fault(fault, failure, words)) continue;
    if (fault.text == "ModuleNotFoundError" && !python.empty()) return by_missing_module(words, python);
    return Advice{std::string(fault.guess),
                  fault.next.empty() ? "see " + place_of_words(failure) : std::string(fault.next),
                  std::string(fault.more)};
  }
  return std::nullopt;
}

Advice by_abort(const WorkerFailure& failure) {
  const std::string words = place_of_words(failure);
  if (words.empty())
    return {", it gave up by itself", "get a core file",
            "it wrote nothing to stderr before abort(); `ulimit -c unlimited` keeps a core file for gdb"};
  return {", it gave up by itself", "see " + words,
          "the message before abort() is in " + words + "; `ulimit -c unlimited` keeps a core file for gdb"};
}

Advice by_other_signal(const WorkerFailure& failure) {
  const std::string words = place_of_words(failure);
  const char* const log = failure.log_path.empty() ? "" : "; the worker's whole log is named above";
  if (words.empty())
    return {"", "find out what sends it",
            "look up what sends this signal: the worker wrote nothing to stderr"};
  return {"", "see " + words, std::string("look up what sends this signal") + log};
}

Advice by_signal(const WorkerFailure& failure) {
  if (failure.cause.evidence.starts_with(kRehearsed))
    return {", in a rehearsal (musterctl chaos)", "it was done on purpose",
            "nothing: an operator had the signal sent to see what comes of it"};
  switch (failure.cause.value) {
    case SIGKILL:
      if (tells_of_oom_kill(failure.cause.evidence))
        return {", most likely out of memory", "give it more memory or lower its use",
                fmt::format("lower the memory use of rank {} or raise the memory limit on {}", failure.rank,
                            failure.node)};
      if (failure.cause.evidence.empty())
        return {"", "was it out of memory?",
                "look for an out-of-memory kill in the kernel's log (dmesg), then for a scheduler or a "
                "person that sent SIGKILL"};
      return {"", "find out who sent it",
              "no out-of-memory kill was counted: a scheduler, another program or a person sent SIGKILL; "
              "look in the scheduler's log"};
    case SIGSEGV:
    case SIGBUS:
    case SIGILL:
    case SIGFPE:
      return {", a crash in native code", "get a stack trace",
              "run again with PYTHONFAULTHANDLER=1 (Python), or with `ulimit -c unlimited` and open the core "
              "file in gdb"};
    case SIGABRT:
      return by_abort(failure);
    case SIGTERM:
    case SIGINT:
    case SIGHUP:
      return {"", "find out who sent it",
              "neither muster nor the worker's crash sent this signal: look in the scheduler's log, or for a "
              "person"};
    default:
      return by_other_signal(failure);
  }
}

Advice by_start_failure(const WorkerFailure& failure) {
  if (failure.cause.value == EMFILE || failure.cause.value == ENFILE)
    return {"", "raise the limit of open files",
            "each worker takes 7 of the launcher's descriptors: raise `ulimit -n` before the launch, or "
            "start fewer workers"};
  if (failure.cause.value == EAGAIN || failure.cause.value == ENOMEM)
    return {"", "free processes or memory",
            "the machine or its limits allow no further process: see `ulimit -u` and the cgroup's pids.max"};
  if (failure.cause.value == ENOEXEC)
    return {
        ", no program of this machine and no script that names its interpreter",
        "begin a script with #! and its interpreter",
        "begin a script with `#!/bin/sh`, or what it is written for, or give it to its interpreter: `muster "
        "... sh SCRIPT`; a program must be built for this machine"};
  if (failure.cause.value == ENOSPC || failure.cause.value == EDQUOT || failure.cause.value == EROFS)
    return {"", "see what could not be written",
            "muster could not make the worker's files: free room, or choose another --log-dir"};
  return {"", "check the program and its interpreter",
          "the program must exist, be executable for this machine, and its `#!` interpreter must exist"};
}

// Where no logs are kept, none is named.
std::string mend_it(const WorkerFailure& failure) {
  if (failure.last_lines.empty())
    return "mend what its error file says, which it wrote to TORCHELASTIC_ERROR_FILE";
  return failure.log_path.empty() ? "mend what its last lines say; no logs were kept (--log-dir=/dev/null)"
                                  : "mend what its last lines say; the whole log is named above them";
}

// Of a worker that is a failure though it exited with 0: --expect-done.
Advice by_early_exit(const WorkerFailure& failure) {
  return {" before it said that it was done", "find out why it left early",
          std::string(failure.last_lines.empty() ? "find out why it left early"
                                                 : "its last lines may say why it left early") +
              "; a worker that never calls done() of the SDK has to be started without --expect-done"};
}

// Of a worker that exited by itself.
// Lines follow it: more of its message, or the program handled it and went on. That it was the cause is not said.
std::optional<Advice> by_earlier_traceback(const WorkerFailure& failure) {
  if (!failure.message.empty() || !exited_with(failure, kPythonsCode)) return std::nullopt;
  const auto told = find_traceback(failure.last_lines);
  if (!told) return std::nullopt;
  return Advice{" after " + clipped(told->error, kMaxErrorBytes), "see " + place_of_words(failure),
                mend_it(failure)};
}

Advice by_silence_or_words(const WorkerFailure& failure) {
  if (failure.last_lines.empty() && !failure.message.empty())
    return {"", "see its error file", mend_it(failure)};
  const bool silent = failure.last_lines.empty();
  const bool logged = !failure.log_path.empty();
  if (silent && logged)
    return {", and wrote nothing to stderr", "see its log",
            "run the program alone to see why it exits; its stdout.log lies in the log folder"};
  if (silent)
    return {", and wrote nothing to stderr", "run it alone to see why",
            "run the program alone to see why it exits; no logs were kept (--log-dir=/dev/null)"};
  return {"", "see its last lines", mend_it(failure)};
}

}  // namespace

Advice advice_for(const WorkerFailure& failure, const std::string& python) {
  if (failure.cause.kind == ExitCause::Kind::start_failed) return by_start_failure(failure);
  if (failure.cause.success()) return by_early_exit(failure);
  if (!(failure.cause.kind == ExitCause::Kind::signalled && failure.cause.value == SIGKILL))
    if (auto advice = by_known_fault(failure, python)) return *advice;
  if (failure.cause.kind == ExitCause::Kind::signalled) return by_signal(failure);
  if (const auto traceback = traceback_of(failure))
    return {", " + clipped(traceback->error, kMaxErrorBytes),
            "see " + (traceback->place.empty() ? place_of_words(failure) : traceback->place),
            mend_it(failure)};
  if (auto advice = by_earlier_traceback(failure)) return *advice;
  return by_silence_or_words(failure);
}

}  // namespace muster::agent
