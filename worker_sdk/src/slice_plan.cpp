#include "worker_sdk/src/slice_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <unordered_map>

namespace muster::worker {
namespace {

using Json = nlohmann::json;

struct Owned {
  IndexedSlice slice;
  std::size_t rank = 0;
};

struct Gathered {
  IndexedTensor tensor;  ///< its slices are filled in last
  std::size_t named_by = 0;
  std::vector<Owned> owned;
};

std::string text_of(ElementType type, const std::vector<std::int64_t>& shape) {
  return fmt::format("{} [{}]", name_of(type), fmt::join(shape, ", "));
}

void check_rows(const TensorSlice& slice, std::size_t rank) {
  const auto rows = rows_of(slice.shape);
  if (slice.first_row < 0 || slice.rows < 0 || slice.first_row > rows || slice.rows > rows - slice.first_row)
    throw std::invalid_argument(
        fmt::format("tensor '{}': rank {} holds {} rows from row {} on, but there are {}", slice.name, rank,
                    slice.rows, slice.first_row, rows));
}

class Gathering {
 public:
  void add(const TensorSlice& slice, std::size_t rank) {
    check_shape(slice.name, slice.shape, slice.type);
    check_rows(slice, rank);
    const auto [place, is_new] = places_.try_emplace(slice.name, all_.size());
    if (is_new) all_.push_back({{slice.name, slice.type, slice.shape, {}}, rank, {}});
    auto& gathered = all_[place->second];
    if (gathered.tensor.type != slice.type || gathered.tensor.shape != slice.shape)
      throw std::invalid_argument(fmt::format(
          "tensor '{}': rank {} has {}, rank {} has {}", slice.name, gathered.named_by,
          text_of(gathered.tensor.type, gathered.tensor.shape), rank, text_of(slice.type, slice.shape)));
    if (slice.saves && slice.rows > 0) gathered.owned.push_back({{0, slice.first_row, slice.rows}, rank});
  }

  std::vector<Gathered>& all() { return all_; }

 private:
  std::vector<Gathered> all_;
  std::unordered_map<std::string, std::size_t> places_;
};

/// Sorts what is saved of a tensor, and sees that each of its rows is saved once.
void check_cover(Gathered& gathered) {
  auto& owned = gathered.owned;
  std::sort(owned.begin(), owned.end(), [](const Owned& a, const Owned& b) {
    return std::pair(a.slice.first_row, a.rank) < std::pair(b.slice.first_row, b.rank);
  });
  std::int64_t next = 0;
  std::set<std::size_t> ranks;
  const auto& name = gathered.tensor.name;
  for (std::size_t i = 0; i < owned.size(); ++i) {
    const auto first = owned[i].slice.first_row;
    if (!ranks.insert(owned[i].rank).second)
      throw std::invalid_argument(fmt::format("tensor '{}' is there twice on rank {}", name, owned[i].rank));
    if (first > next)
      throw std::invalid_argument(
          fmt::format("tensor '{}': rows {} to {} are saved by no rank", name, next, first - 1));
    if (first < next)
      throw std::invalid_argument(fmt::format("tensor '{}': row {} is saved by rank {} and by rank {}", name,
                                              first, owned[i - 1].rank, owned[i].rank));
    next = first + owned[i].slice.rows;
  }
  if (next < rows_of(gathered.tensor.shape))
    throw std::invalid_argument(fmt::format("tensor '{}': rows {} to {} are saved by no rank", name, next,
                                            rows_of(gathered.tensor.shape) - 1));
}

}  // namespace

std::string encode_slices(const std::vector<TensorSlice>& slices) {
  auto json = Json::array();
  for (const auto& slice : slices)
    json.push_back({slice.name, name_of(slice.type), slice.shape, slice.first_row, slice.rows, slice.saves});
  try {
    return json.dump();
  } catch (const Json::type_error&) {
    throw std::invalid_argument("a tensor's name is not UTF-8");
  }
}

std::vector<TensorSlice> decode_slices(const std::string& text) {
  std::vector<TensorSlice> slices;
  for (const auto& json : Json::parse(text)) {
    TensorSlice slice{.name = json.at(0)};
    slice.type = element_type_of(json.at(1).get<std::string>()).value();
    slice.shape = json.at(2).get<std::vector<std::int64_t>>();
    slice.first_row = json.at(3);
    slice.rows = json.at(4);
    slice.saves = json.at(5);
    slices.push_back(std::move(slice));
  }
  return slices;
}

SlicePlan plan_slices(const std::vector<std::vector<TensorSlice>>& by_rank) {
  Gathering gathering;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank)
    for (const auto& slice : by_rank[rank]) gathering.add(slice, rank);

  SlicePlan plan;
  plan.part_of_rank.resize(by_rank.size());
  std::set<std::size_t> savers;
  for (auto& gathered : gathering.all()) {
    check_cover(gathered);
    for (const auto& owned : gathered.owned) savers.insert(owned.rank);
  }
  for (auto rank : savers) plan.part_of_rank[rank] = plan.parts++;
  for (auto& gathered : gathering.all()) {
    for (auto& owned : gathered.owned) {
      owned.slice.part = *plan.part_of_rank[owned.rank];
      gathered.tensor.slices.push_back(owned.slice);
    }
    plan.tensors.push_back(std::move(gathered.tensor));
  }
  return plan;
}

}  // namespace muster::worker
