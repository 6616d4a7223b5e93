// The shells' completion of muster's options, made from the option table.
#pragma once

#include <string>

namespace muster::launcher {

/// A script for the shell to read: "bash" or "zsh". Options with the values they allow, folders and files where they
/// take such; the program as a file or a command; after the program, nothing of muster's.
std::string completion_for(const std::string& shell);

}  // namespace muster::launcher
