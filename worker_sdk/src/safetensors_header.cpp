#include "worker_sdk/src/safetensors_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "worker_sdk/src/checkpoint_index.hpp"

namespace muster::worker {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* metadata_name = "__metadata__";

[[noreturn]] void fail(const std::string& what) { throw CheckpointError("offset 8: " + what); }

std::vector<std::size_t> data_order(std::span<const TensorRef> tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return size_of(tensors[a].type) > size_of(tensors[b].type);
  });
  return order;
}

void check_names(std::span<const TensorRef> tensors) {
  std::set<std::string_view> seen;
  for (const auto& tensor : tensors) {
    if (tensor.name == metadata_name) throw CheckpointError("a tensor may not be named __metadata__");
    if (!seen.insert(tensor.name).second)
      throw CheckpointError("two tensors are named '" + tensor.name + "'");
  }
}

/// JSON has no rule against a key that is there twice; a file with one means two things.
Json parse_without_duplicates(std::string_view text) {
  std::vector<std::set<std::string>> keys;
  const auto check = [&keys](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      fail("'" + parsed.get<std::string>() + "' is there twice");
    return true;
  };
  try {
    return Json::parse(text, check);
  } catch (const Json::parse_error& error) {
    fail(fmt::format("the header is not JSON (byte {})", error.byte));
  }
}

std::uint64_t natural(const Json& value, const std::string& where) {
  if (!value.is_number_unsigned()) fail(where + " is not a whole number of at least 0");
  return value.get<std::uint64_t>();
}

const Json& member(const Json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end()) fail(where + " has no " + key);
  return *found;
}

std::vector<std::int64_t> decode_shape(const Json& value, const std::string& where) {
  if (!value.is_array()) fail(where + ": shape is not a list");
  std::vector<std::int64_t> shape;
  for (const auto& item : value) {
    const auto extent = natural(item, where + ": an extent");
    if (extent > std::numeric_limits<std::int64_t>::max()) fail(where + ": an extent is too large");
    shape.push_back(static_cast<std::int64_t>(extent));
  }
  return shape;
}

std::uint64_t bytes_of(const SafetensorsEntry& entry, const std::string& where) {
  std::uint64_t bytes = size_of(entry.type);
  for (auto extent : entry.shape)
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes))
      fail(where + ": its shape has more than 2^64 bytes");
  return bytes;
}

SafetensorsEntry decode_entry(const std::string& name, const Json& value, std::uint64_t data_bytes) {
  const std::string where = "tensor '" + name + "'";
  if (!value.is_object()) fail(where + " is not an object");
  SafetensorsEntry entry;
  entry.name = name;

  const auto& type = member(value, "dtype", where);
  if (!type.is_string()) fail(where + ": dtype is not a text");
  const auto known = element_type_of(type.get<std::string>());
  if (!known) fail(where + ": dtype '" + type.get<std::string>() + "' is not one of those supported");
  entry.type = *known;
  entry.shape = decode_shape(member(value, "shape", where), where);

  const auto& offsets = member(value, "data_offsets", where);
  if (!offsets.is_array() || offsets.size() != 2) fail(where + ": data_offsets is not [begin, end]");
  entry.begin = natural(offsets[0], where + ": begin");
  entry.end = natural(offsets[1], where + ": end");
  if (entry.begin > entry.end || entry.end > data_bytes)
    fail(fmt::format("{}: data_offsets [{}, {}] do not lie in the file's {} bytes of data", where,
                     entry.begin, entry.end, data_bytes));
  const auto bytes = bytes_of(entry, where);
  if (entry.end - entry.begin != bytes)
    fail(fmt::format("{}: data_offsets [{}, {}] hold {} bytes, its shape {}", where, entry.begin, entry.end,
                     entry.end - entry.begin, bytes));
  return entry;
}

void check_no_holes(const std::vector<SafetensorsEntry>& entries, std::uint64_t data_bytes) {
  std::vector<const SafetensorsEntry*> by_offset;
  for (const auto& entry : entries) by_offset.push_back(&entry);
  std::sort(by_offset.begin(), by_offset.end(), [](const auto* a, const auto* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  std::uint64_t next = 0;
  for (const auto* entry : by_offset) {
    if (entry->begin != next)
      fail(fmt::format("tensor '{}' begins at {}, {} the tensor before it ends at {}", entry->name,
                       entry->begin, entry->begin < next ? "but overlaps:" : "with a hole:", next));
    next = entry->end;
  }
  if (next != data_bytes)
    fail(fmt::format("the tensors end at {}, the file has {} bytes of data", next, data_bytes));
}

}  // namespace

SafetensorsPlan plan_safetensors(std::span<const TensorRef> tensors,
                                 const std::map<std::string, std::string>& metadata) {
  check_names(tensors);
  for (const auto& tensor : tensors) check_shape(tensor.name, tensor.shape, tensor.type);
  SafetensorsPlan plan{.head = {}, .order = data_order(tensors)};
  std::vector<std::uint64_t> begins(tensors.size());
  std::uint64_t next = 0;
  for (auto index : plan.order) {
    begins[index] = next;
    next += tensors[index].bytes();
  }

  Json header = Json::object();
  if (!metadata.empty()) header[metadata_name] = metadata;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    auto& entry = header[tensors[i].name];
    entry["dtype"] = name_of(tensors[i].type);
    entry["shape"] = tensors[i].shape;
    entry["data_offsets"] = {begins[i], begins[i] + tensors[i].bytes()};
  }

  std::string text;
  try {
    text = header.dump();
  } catch (const Json::type_error&) {
    throw CheckpointError("a tensor's name or a metadata text is not UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  for (unsigned shift = 0; shift < 64; shift += 8)
    plan.head.push_back(static_cast<char>((std::uint64_t{text.size()} >> shift) & 0xff));
  plan.head += text;
  return plan;
}

std::uint64_t decode_safetensors_length(std::span<const std::byte> length, std::uint64_t file_bytes) {
  if (length.size() < safetensors_length_bytes || file_bytes < safetensors_length_bytes)
    throw CheckpointError("offset 0: the file is shorter than the 8 bytes of its header's length");
  std::uint64_t header_bytes = 0;
  for (unsigned i = 0; i < 8; ++i) header_bytes |= std::to_integer<std::uint64_t>(length[i]) << (8 * i);
  if (header_bytes > max_safetensors_header_bytes)
    throw CheckpointError(fmt::format("offset 0: a header of {} bytes, more than the {} that are allowed",
                                      header_bytes, max_safetensors_header_bytes));
  if (header_bytes > file_bytes - safetensors_length_bytes)
    throw CheckpointError(fmt::format("offset 0: a header of {} bytes, but the file has only {} bytes",
                                      header_bytes, file_bytes));
  return header_bytes;
}

SafetensorsHeader decode_safetensors_header(std::string_view text, std::uint64_t data_bytes) {
  const Json json = parse_without_duplicates(text);
  if (!json.is_object()) fail("the header is not a JSON object");
  SafetensorsHeader header;
  for (const auto& [name, value] : json.items()) {
    if (name != metadata_name) {
      header.entries.push_back(decode_entry(name, value, data_bytes));
      continue;
    }
    if (!value.is_object()) fail("__metadata__ is not an object");
    for (const auto& [key, text_value] : value.items()) {
      if (!text_value.is_string()) fail("__metadata__: '" + key + "' is not a text");
      header.metadata[key] = text_value.get<std::string>();
    }
  }
  check_no_holes(header.entries, data_bytes);
  return header;
}

}  // namespace muster::worker
