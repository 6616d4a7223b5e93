// Whether what is to be written at the end can be written, asked at the beginning.
#pragma once

#include <filesystem>

namespace muster::trainers {

/// Makes the folder if it is missing and tries a file in it. Throws std::invalid_argument that names the option, the
/// folder and the errno text.
void check_writable_folder(const std::filesystem::path& folder, const char* option);

/// The folder in which the file is to lie is there and can be written, and the file is none. Throws as above.
void check_writable_file(const std::filesystem::path& file, const char* option);

}  // namespace muster::trainers
