#include "trainers/training/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "trainers/training/broadcast_text.hpp"

namespace muster::trainers {
namespace {

/// The first difference, as a sentence; empty if there is none.
std::string difference(const Description& here, const Description& on_rank_zero, int rank) {
  for (std::size_t i = 0; i < std::max(here.size(), on_rank_zero.size()); ++i) {
    if (i >= here.size())
      return fmt::format("rank {} has no {}, rank 0 has one", rank, on_rank_zero[i].first);
    if (i >= on_rank_zero.size()) return fmt::format("rank {} has {}, rank 0 has none", rank, here[i].first);
    if (here[i].first != on_rank_zero[i].first)
      return fmt::format("rank {} has {} where rank 0 has {}", rank, here[i].first, on_rank_zero[i].first);
    if (here[i].second != on_rank_zero[i].second)
      return fmt::format("{}: rank {} has {}, rank 0 has {}", here[i].first, rank, here[i].second,
                         on_rank_zero[i].second);
  }
  return {};
}

}  // namespace

Description describe(const std::vector<Parameter*>& parameters) {
  Description description;
  for (const auto* parameter : parameters)
    description.emplace_back("tensor " + parameter->name, "F32 " + text_of(parameter->value.shape()));
  return description;
}

Description describe(const std::string& set, const Dataset& data) {
  return {{set + " samples", std::to_string(data.size())},
          {"numbers in a " + set + " sample", std::to_string(data.features())},
          {"fingerprint of the " + set + " samples", fmt::format("{:016x}", data.fingerprint())}};
}

void check_agreement(worker::ProcessGroup& group, const Description& description) {
  const auto text = broadcast_text(group, nlohmann::json(description).dump(), 0);
  const auto own = difference(description, nlohmann::json::parse(text).get<Description>(), group.rank());
  std::vector<std::int64_t> differs(static_cast<std::size_t>(group.size()), 0);
  differs[static_cast<std::size_t>(group.rank())] = own.empty() ? 0 : 1;
  group.all_reduce(worker::buffer_of(std::span(differs)), worker::ReduceOp::sum)->wait();
  const auto first = std::find(differs.begin(), differs.end(), 1);
  if (first == differs.end()) return;
  throw std::invalid_argument(broadcast_text(group, own, static_cast<int>(first - differs.begin())) +
                              "; all ranks must be started with the same options and data");
}

void check_agreement(worker::ProcessGroup& group, const Description& options,
                     const std::vector<Parameter*>& parameters, const Dataset& train, const Dataset& test) {
  auto all = options;
  for (const auto& part : {describe("training", train), describe("test", test), describe(parameters)})
    all.insert(all.end(), part.begin(), part.end());
  check_agreement(group, all);
}

}  // namespace muster::trainers
