// `index.json` of a checkpoint: pure, text in and values out.
//
//   file     = '{"checksum":"' 32 hexadecimal digits '","index":' body '}' newline
//   checksum = XXH3-128 of the bytes of `body`
//   body     = { "version": 1, "step": n, "facts": {text: text}, "parts": [part, ...], "tensors": [tensor,
//   ...] } part     = { "file": name, "bytes": n, "checksum": 32 hexadecimal digits } tensor   = { "name":
//   text, "type": "F32" | ..., "shape": [extent, ...], "part": index into parts }
//
// The file is compared byte by byte around the body, so that no flipped bit anywhere in it goes unseen.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/worker/checkpoint.hpp"

namespace muster::worker {

constexpr std::uint64_t max_index_bytes = 256 << 20;

struct IndexedPart {
  std::string file;
  std::uint64_t bytes = 0;
  std::string checksum;
};

struct IndexedTensor {
  std::string name;
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape;
  std::size_t part = 0;
};

struct CheckpointIndex {
  std::int64_t step = 0;
  Facts facts;
  std::vector<IndexedPart> parts;
  std::vector<IndexedTensor> tensors;
};

/// "part-00000-of-00001.safetensors".
std::string part_name(std::size_t part, std::size_t count);

/// Throws CheckpointError for a fact that is not UTF-8.
std::string encode_index(const CheckpointIndex& index);

/// Throws CheckpointError that says what is wrong.
CheckpointIndex decode_index(std::string_view text);

/// The first way in which the checkpoint is not of this model, as a sentence; nothing if there is none.
std::optional<std::string> difference(const CheckpointIndex& index, std::span<const TensorRef> tensors);

}  // namespace muster::worker
