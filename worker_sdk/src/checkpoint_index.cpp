#include "worker_sdk/src/checkpoint_index.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <unordered_map>

#include "worker_sdk/src/checksum.hpp"

namespace muster::worker {
namespace {

using Json = nlohmann::ordered_json;

constexpr int index_version = 3;
constexpr int oldest_index_version = 1;
constexpr std::string_view before_checksum = "{\"checksum\":\"";
constexpr std::string_view before_body = "\",\"index\":";
constexpr std::string_view after_body = "}\n";
constexpr std::size_t checksum_digits = 32;

[[noreturn]] void fail(const std::string& why) { throw CheckpointError("index.json: " + why); }

std::string checksum_of_text(std::string_view text) { return checksum_of(std::as_bytes(std::span(text))); }

std::string_view checked_body(std::string_view text) {
  const auto take = [&text](std::string_view expected) {
    if (!text.starts_with(expected)) fail("damaged");
    text.remove_prefix(expected.size());
  };
  take(before_checksum);
  const auto checksum = text.substr(0, checksum_digits);
  take(checksum);
  take(before_body);
  if (!text.ends_with(after_body)) fail("damaged");
  text.remove_suffix(after_body.size());
  if (checksum_of_text(text) != checksum) fail("its checksum does not fit, it is damaged");
  return text;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

/// From the first row to the last, without a gap, each part at most once.
void check_slices(const IndexedTensor& tensor, std::size_t parts) {
  std::int64_t next = 0;
  std::set<std::size_t> used;
  for (const auto& slice : tensor.slices) {
    if (slice.part >= parts) fail("tensor '" + tensor.name + "' is in a part that does not exist");
    if (!used.insert(slice.part).second) fail("tensor '" + tensor.name + "' is in a part twice");
    if (slice.first_row != next || slice.rows < 0 || slice.rows > rows_of(tensor.shape) - next)
      fail(fmt::format("tensor '{}': its slices do not follow each other at row {}", tensor.name, next));
    next += slice.rows;
  }
  if (next != rows_of(tensor.shape))
    fail(fmt::format("tensor '{}': rows {} to {} are in no part", tensor.name, next,
                     rows_of(tensor.shape) - 1));
}

IndexedTensor decode_tensor(const Json& json, std::size_t parts) {
  IndexedTensor tensor;
  tensor.name = json.at("name");
  const std::string type = json.at("type");
  const auto known = element_type_of(type);
  if (!known) fail("tensor '" + tensor.name + "' has the unknown type '" + type + "'");
  tensor.type = *known;
  tensor.shape = json.at("shape").get<std::vector<std::int64_t>>();
  if (!is_possible(tensor.shape, tensor.type)) fail("tensor '" + tensor.name + "' has an impossible shape");
  if (json.contains("part")) {
    tensor.slices.push_back({json.at("part"), 0, rows_of(tensor.shape)});
  } else {
    for (const auto& slice : json.at("slices"))
      tensor.slices.push_back({slice.at(0), slice.at(1), slice.at(2)});
  }
  check_slices(tensor, parts);
  return tensor;
}

/// A job's name may have any bytes; what is not UTF-8 in it is shown as such.
Json encode_lineage(const Lineage& lineage) {
  const auto job = Json(lineage.job).dump(-1, ' ', false, Json::error_handler_t::replace);
  return {{"generation", lineage.generation}, {"round", lineage.round}, {"job", Json::parse(job)}};
}

Lineage decode_lineage(const Json& json) {
  Lineage lineage{json.at("generation"), json.at("round"), json.at("job")};
  if (lineage.generation < 0 || lineage.round < 0) fail("its run has a negative number");
  return lineage;
}

CheckpointIndex decode_body(std::string_view body) {
  const auto json = Json::parse(body);
  const auto& version = json.at("version");
  if (version < oldest_index_version || version > index_version)
    fail("version " + version.dump() + " is not one that this program reads");
  CheckpointIndex index;
  index.step = json.at("step");
  if (json.contains("run")) index.lineage = decode_lineage(json.at("run"));
  index.facts = json.at("facts").get<Facts>();
  const auto& parts = json.at("parts");
  for (const auto& part : parts) {
    const auto expected = part_name(index.parts.size(), parts.size());
    if (part.at("file") != expected) fail("a part is not named " + expected);
    index.parts.push_back({expected, part.at("bytes"), part.at("checksum")});
  }
  for (const auto& tensor : json.at("tensors"))
    index.tensors.push_back(decode_tensor(tensor, index.parts.size()));
  return index;
}

}  // namespace

bool is_possible(const std::vector<std::int64_t>& shape, ElementType type) {
  auto bytes = static_cast<std::int64_t>(size_of(type));
  for (auto extent : shape)
    if (extent < 0 || __builtin_mul_overflow(bytes, std::max<std::int64_t>(extent, 1), &bytes)) return false;
  return true;
}

void check_shape(const std::string& name, const std::vector<std::int64_t>& shape, ElementType type) {
  if (size_of(type) == 0)
    throw std::invalid_argument(
        fmt::format("tensor '{}': there is no element type {}", name, static_cast<int>(type)));
  if (!is_possible(shape, type))
    throw std::invalid_argument(
        fmt::format("tensor '{}' has an impossible shape: {}; expected extents of at least 0, and fewer than "
                    "2^63 bytes in all",
                    name, shape_text(shape)));
}

std::int64_t rows_of(const std::vector<std::int64_t>& shape) { return shape.empty() ? 1 : shape.front(); }

std::size_t row_bytes_of(const std::vector<std::int64_t>& shape, ElementType type) {
  std::size_t bytes = size_of(type);
  for (std::size_t i = 1; i < shape.size(); ++i) bytes *= static_cast<std::size_t>(shape[i]);
  return bytes;
}

std::vector<std::int64_t> shape_of_slice(const std::vector<std::int64_t>& shape, std::int64_t rows) {
  auto own = shape;
  if (!own.empty()) own.front() = rows;
  return own;
}

IndexedTensor tensor_in_part(const TensorRef& tensor, std::size_t part) {
  return {tensor.name, tensor.type, tensor.shape, {{part, 0, rows_of(tensor.shape)}}};
}

std::string part_name(std::size_t part, std::size_t count) {
  return fmt::format("part-{:05}-of-{:05}.safetensors", part, count);
}

std::string encode_index(const CheckpointIndex& index) {
  Json json;
  json["version"] = index_version;
  json["step"] = index.step;
  json["run"] = encode_lineage(index.lineage);
  json["facts"] = index.facts;
  json["parts"] = Json::array();
  for (const auto& part : index.parts)
    json["parts"].push_back({{"file", part.file}, {"bytes", part.bytes}, {"checksum", part.checksum}});
  json["tensors"] = Json::array();
  for (const auto& tensor : index.tensors) {
    auto slices = Json::array();
    for (const auto& slice : tensor.slices)
      slices.push_back(Json::array({slice.part, slice.first_row, slice.rows}));
    json["tensors"].push_back(
        {{"name", tensor.name}, {"type", name_of(tensor.type)}, {"shape", tensor.shape}, {"slices", slices}});
  }
  try {
    const auto body = json.dump(1);
    return fmt::format("{}{}{}{}{}", before_checksum, checksum_of_text(body), before_body, body, after_body);
  } catch (const Json::type_error&) {
    fail("a fact or a tensor's name is not UTF-8");
  }
}

CheckpointIndex decode_index(std::string_view text) {
  const auto body = checked_body(text);
  try {
    return decode_body(body);
  } catch (const Json::exception& error) {
    fail(error.what());
  }
}

std::optional<std::string> difference(const CheckpointIndex& index, std::span<const TensorRef> tensors) {
  std::unordered_map<std::string_view, const IndexedTensor*> saved;
  for (const auto& tensor : index.tensors) saved[tensor.name] = &tensor;
  for (const auto& wanted : tensors) {
    const auto found = saved.find(wanted.name);
    if (found == saved.end()) return "of another model: it has no tensor '" + wanted.name + "'";
    const auto& tensor = *found->second;
    if (tensor.type != wanted.type)
      return fmt::format("of another model: tensor '{}' is {}, here {}", wanted.name, name_of(tensor.type),
                         name_of(wanted.type));
    if (tensor.shape != wanted.shape)
      return fmt::format("of another model: tensor '{}' has shape {}, here {}", wanted.name,
                         shape_text(tensor.shape), shape_text(wanted.shape));
    saved.erase(found);
  }
  for (const auto& tensor : index.tensors)
    if (saved.contains(tensor.name))
      return "of another model: it has a tensor '" + tensor.name + "' that is not here";
  return std::nullopt;
}

}  // namespace muster::worker
