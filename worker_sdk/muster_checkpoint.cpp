// muster_checkpoint: looks at a training's checkpoints, checks them, makes one safetensors file of one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/standard_output.hpp"
#include "muster/worker/checkpoint.hpp"
#include "worker_sdk/src/checkpoint_tool.hpp"

namespace muster::worker {
namespace {

struct Arguments {
  std::string path;
  std::string file;
  std::string prefix;
};

int inspect(const Arguments& arguments) {
  fmt::print("{}", inspect_checkpoint(arguments.path));
  return 0;
}

int verify(const Arguments& arguments) {
  int exit_code = 0;
  for (const auto& verdict : verify_checkpoints(arguments.path)) {
    fmt::print("{}: {}\n", verdict.checkpoint.string(),
               verdict.fault.empty() ? "whole, " + verdict.good : "NOT USABLE: " + verdict.fault);
    if (!verdict.fault.empty()) exit_code = 1;
  }
  return exit_code;
}

int consolidate(const Arguments& arguments) {
  const auto done = consolidate_checkpoint(arguments.path, arguments.file, arguments.prefix);
  for (const auto& why : done.skipped) fmt::print(stderr, "muster_checkpoint: skipped {}\n", why);
  fmt::print("{}: {} tensors of {}\n", arguments.file, done.tensors, done.checkpoint.string());
  return 0;
}

int run(int argc, char** argv) {
  Arguments arguments;
  int (*command)(const Arguments&) = nullptr;
  CLI::App app("Looks at checkpoints of muster's workers. PATH is a checkpoint, or a folder of checkpoints.");
  app.require_subcommand(1);
  const auto add = [&](const char* name, const char* what, int (*body)(const Arguments&)) {
    auto* sub = app.add_subcommand(name, what);
    sub->add_option("path", arguments.path, "a checkpoint, or a folder of checkpoints")->required();
    sub->callback([&command, body] { command = body; });
    return sub;
  };
  add("inspect", "print step, facts, parts and tensors; of a folder, of its newest checkpoint", inspect);
  add("verify", "compare with the checksums, all checkpoints of a folder; exit code 1 if one is not usable",
      verify);
  auto* one_file =
      add("consolidate", "write one safetensors file, for Python's safetensors and PyTorch", consolidate);
  one_file->add_option("file", arguments.file, "the file to write")->required();
  one_file->add_option(
      "--prefix", arguments.prefix,
      "only tensors whose names begin with this, which is cut off: 'model.' for the parameters alone");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return flush_standard_output("muster_checkpoint") ? 0 : 1;
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "muster_checkpoint: {}; --help lists what there is\n", error.what());
    return 2;
  }
  const int exit_code = command(arguments);
  return flush_standard_output("muster_checkpoint") ? exit_code : 1;
}

}  // namespace
}  // namespace muster::worker

int main(int argc, char** argv) {
  try {
    return muster::worker::run(argc, argv);
  } catch (const muster::worker::CheckpointError& error) {
    fmt::print(stderr, "muster_checkpoint: {}\n", error.what());
    return 1;
  }
}
