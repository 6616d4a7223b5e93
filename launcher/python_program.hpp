// What Python runs though it is no script.
#pragma once

#include <string>

namespace muster::launcher {

/// A folder with a __main__.py in it.
bool is_python_folder(const std::string& path);

/// A file that ends in .pyz or .zip and has the end of a zip archive, as `python -m zipapp` makes it.
bool is_python_archive(const std::string& path);

}  // namespace muster::launcher
