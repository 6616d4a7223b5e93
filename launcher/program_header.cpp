#include "launcher/program_header.hpp"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

namespace muster::launcher {

namespace {

constexpr std::uint64_t kMaxPath = 4096;

constexpr int kOwnMachine =
#if defined(__x86_64__)
    EM_X86_64;
#elif defined(__aarch64__)
    EM_AARCH64;
#else
    EM_NONE;
#endif

/// False: it is not all there.
bool read_at(std::istream& file, std::uint64_t place, char* into, std::uint64_t size) {
  file.clear();
  file.seekg(static_cast<std::streamoff>(place));
  return static_cast<bool>(file.read(into, static_cast<std::streamsize>(size)));
}

/// The last byte of it.
bool is_there(std::istream& file, const Elf64_Phdr& segment) {
  char last = 0;
  return segment.p_filesz == 0 || read_at(file, segment.p_offset + segment.p_filesz - 1, &last, 1);
}

void read_segments(std::istream& file, const Elf64_Ehdr& header, ProgramHeader& known) {
  for (std::uint64_t index = 0; index < header.e_phnum; ++index) {
    Elf64_Phdr segment{};
    known.cut_short = known.cut_short ||
                      !read_at(file, header.e_phoff + index * sizeof segment,
                               reinterpret_cast<char*>(&segment), sizeof segment) ||
                      !is_there(file, segment);
    if (known.cut_short) return;
    if (segment.p_type != PT_INTERP) continue;
    std::string path(std::min<std::uint64_t>(segment.p_filesz, kMaxPath), '\0');
    read_at(file, segment.p_offset, path.data(), path.size());
    known.interpreter = path.substr(0, path.find('\0'));
  }
}

}  // namespace

std::optional<ProgramHeader> read_program_header(std::istream& file) {
  Elf64_Ehdr header{};  // a 32-bit one is shorter, and the same as far as e_machine
  read_at(file, 0, reinterpret_cast<char*>(&header), sizeof header);
  const auto size = static_cast<std::size_t>(file.gcount());
  if (size < SELFMAG || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return std::nullopt;
  ProgramHeader known;
  known.cut_short = size < sizeof(Elf32_Ehdr);
  known.machine = header.e_machine;
  const bool of_our_kind = header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == ELFDATA2LSB &&
                           header.e_phentsize == sizeof(Elf64_Phdr);
  if (of_our_kind && !known.cut_short) read_segments(file, header, known);
  return known;
}

bool runs_here(int machine) {
  if (kOwnMachine == EM_NONE || machine == kOwnMachine) return true;
  return (kOwnMachine == EM_X86_64 && machine == EM_386) || (kOwnMachine == EM_AARCH64 && machine == EM_ARM);
}

std::string machine_name(int machine) {
  constexpr std::pair<int, const char*> kNames[] = {
      {EM_X86_64, "x86-64"},      {EM_AARCH64, "AArch64"}, {EM_386, "32-bit x86"}, {EM_ARM, "32-bit ARM"},
      {EM_PPC64, "64-bit Power"}, {EM_S390, "S/390"},      {EM_RISCV, "RISC-V"}};
  for (const auto& [number, name] : kNames)
    if (number == machine) return name;
  return "machine type " + std::to_string(machine);
}

}  // namespace muster::launcher
