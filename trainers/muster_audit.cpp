// muster_audit: proves from a training's audit files that every sample was used exactly once in each epoch, over all
// kills and changes of the world's size.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <stdexcept>

#include "muster/worker/printing.hpp"
#include "trainers/data/audit.hpp"

namespace muster::trainers {
namespace {

int check(const std::vector<std::string>& folders, std::int64_t expected_epochs) {
  std::vector<AuditFile> files;
  for (const auto& folder : folders)
    for (auto& file : read_audit(folder)) files.push_back(std::move(file));
  const auto verdict = check_audit(files);
  for (const auto& line : verdict.epochs) fmt::print("{}\n", line);
  for (const auto& fault : verdict.faults) fmt::print("FAULT: {}\n", fault);
  const bool enough = verdict.complete_epochs >= expected_epochs;
  if (!enough)
    fmt::print("FAULT: {} complete epochs, {} expected\n", verdict.complete_epochs, expected_epochs);
  if (!enough || !verdict.faults.empty()) return 1;
  fmt::print("{} complete epochs: every sample of each was used exactly once\n", verdict.complete_epochs);
  return 0;
}

int run(int argc, char** argv) {
  CLI::App app(
      "Checks the files of a trainer's --audit-dir: was every sample used exactly once in each epoch?");
  std::vector<std::string> folders;
  std::int64_t epochs = 0;
  app.add_option("folder", folders, "--audit-dir of the trainer; several if the nodes share no disk")
      ->required();
  app.add_option("--epochs", epochs, "so many must be complete");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return worker::flush_standard_output("muster_audit") ? 0 : 2;
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "muster_audit: {}; --help lists what there is\n", error.what());
    return 2;
  }
  const int exit_code = check(folders, epochs);
  return worker::flush_standard_output("muster_audit") ? exit_code : 2;
}

}  // namespace
}  // namespace muster::trainers

int main(int argc, char** argv) {
  try {
    return muster::trainers::run(argc, argv);
  } catch (const std::invalid_argument& error) {
    fmt::print(stderr, "muster_audit: {}\n", error.what());
    return 2;
  }
}
