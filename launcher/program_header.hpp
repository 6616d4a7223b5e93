// What the header of a program (ELF) says about who can run it, read before it is started: the kernel's own answers,
// "Exec format error" and "No such file or directory", name neither.
#pragma once

#include <istream>
#include <optional>
#include <string>

namespace muster::launcher {

struct ProgramHeader {
  int machine = 0;          ///< e_machine: EM_X86_64, EM_AARCH64, ...
  std::string interpreter;  ///< the path of its dynamic loader (PT_INTERP); empty: it has none
  bool cut_short = false;   ///< the file ends before what it says is in it
};

/// None if it does not begin as an ELF file does. Of one of another width or byte order the machine alone is told.
std::optional<ProgramHeader> read_program_header(std::istream& file);

/// Kernels run 32-bit programs of the same family, too.
bool runs_here(int machine);

/// "AArch64"; "machine type 243" for one without a name here.
std::string machine_name(int machine);

}  // namespace muster::launcher
