#include "trainers/training/state.hpp"

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>

namespace muster::trainers {
namespace {

[[noreturn]] void malformed(const std::string& name, const std::string& what) {
  throw std::invalid_argument(fmt::format("the checkpoint's fact '{}' is {}", name, what));
}

const std::string& fact(const worker::Facts& facts, const std::string& name) {
  const auto found = facts.find(name);
  if (found == facts.end()) malformed(name, "missing");
  return found->second;
}

std::int64_t whole_number(const worker::Facts& facts, const std::string& name) {
  const auto& text = fact(facts, name);
  std::int64_t value = 0;
  const auto* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end || value < 0) {
    malformed(name, fmt::format("'{}', expected a whole number", text));
  }
  return value;
}

double real_number(const worker::Facts& facts, const std::string& name) {
  const auto& text = fact(facts, name);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') malformed(name, fmt::format("'{}', expected a number", text));
  return value;
}

/// Checkpoints had no such fact at first; then each worker's batch stayed as it was.
std::int64_t global_batch_of(const worker::Facts& facts) {
  if (facts.contains("global_batch")) return whole_number(facts, "global_batch");
  return whole_number(facts, "world_size") * whole_number(facts, "batch_size");
}

}  // namespace

worker::Facts facts_of(const TrainingState& state, const RunIdentity& identity) {
  return {{"step", std::to_string(state.step)},
          {"epoch", std::to_string(state.epoch)},
          {"position", std::to_string(state.position)},
          {"loss_samples", std::to_string(state.loss_samples)},
          {"loss_sum", fmt::format("{:a}", state.loss_sum)},
          {"global_batch", std::to_string(state.global_batch)},
          {"model", identity.model},
          {"samples", std::to_string(identity.samples)},
          {"seed", std::to_string(identity.seed)},
          {"world_size", std::to_string(identity.world_size)},
          {"batch_size", std::to_string(identity.batch_size)}};
}

TrainingState state_from(const worker::Facts& facts) {
  return {.step = whole_number(facts, "step"),
          .epoch = whole_number(facts, "epoch"),
          .position = whole_number(facts, "position"),
          .loss_samples = whole_number(facts, "loss_samples"),
          .loss_sum = real_number(facts, "loss_sum"),
          .global_batch = global_batch_of(facts)};
}

std::string why_of_another_run(const worker::Facts& facts, const RunIdentity& identity) {
  const auto here = facts_of({}, identity);
  for (const auto* name : {"model", "samples", "seed"}) {
    const auto& saved = fact(facts, name);
    if (saved == here.at(name)) continue;
    return fmt::format(
        "it was made with {} '{}', this run has '{}'; use the same, or another --checkpoint-dir", name, saved,
        here.at(name));
  }
  return {};
}

}  // namespace muster::trainers
