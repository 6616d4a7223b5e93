// What each worker runs, found out before any worker starts.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "launcher/options.hpp"

namespace muster::launcher {

struct Target {
  std::vector<std::string> command;  ///< the file to execute, then its arguments
  std::string why;                   ///< "VIRTUAL_ENV is active", "found on PATH", "as given"
  std::string python = {};           ///< the interpreter, if it is one of Python's that we chose
};

/// The rule, in this order:
///   -m           python -u -m NAME
///   --no-python  NAME as it is: a path if it has a slash, else looked for on PATH
///   --run-path   python -u NAME
///   *.py         python -u NAME
///   a folder with a __main__.py, a zip archive that is called *.pyz or *.zip: python -u NAME
///   else         NAME if it is an executable file (from the current folder), else NAME on PATH
/// python is PYTHON_EXEC, else VIRTUAL_ENV/bin/python, else python3 or python on PATH.
///
/// A file that is executed and begins with "#!" must name an interpreter that is there ("#!/usr/bin/env NAME": one on
/// PATH): else no worker could start.
///
/// An error's error_number is ENOENT (not found) or EACCES, EISDIR and the like (found, but cannot be run).
Result<Target> find_target(const LauncherOptions& options, const Environment& environment);

/// As a shell: 127 if it was not found, else 126.
int exit_code_of_missing_target(const Error& error);

}  // namespace muster::launcher
