// `index.json` of a checkpoint: pure, text in and values out.
//
//   file     = '{"checksum":"' 32 hexadecimal digits '","index":' body '}' newline
//   checksum = XXH3-128 of the bytes of `body`
//   body     = { "version": 3, "step": n, "run": run, "facts": {text: text}, "parts": [part, ...],
//                "tensors": [tensor, ...] }
//   run      = { "generation": n, "round": n, "job": text }
//   part     = { "file": name, "bytes": n, "checksum": 32 hexadecimal digits }
//   tensor   = { "name": text, "type": "F32" | ..., "shape": [extent, ...], "slices": [slice, ...] }
//   slice    = [index into parts, first row, rows]
//
// Rows are those of the first extent; a tensor without extents is one row. A tensor's slices follow each other from its
// first row to its last, no two in the same part. In its part a slice has the tensor's name and its own shape.
// Older versions are still read: 2 has no run, and in 1 a tensor has "part": index in place of its slices besides, and
// all its rows lie there.
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

struct IndexedSlice {
  std::size_t part = 0;
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
};

struct IndexedTensor {
  std::string name;
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape;
  std::vector<IndexedSlice> slices;
};

/// No extent is negative, and the bytes can be counted.
bool is_possible(const std::vector<std::int64_t>& shape, ElementType type);
/// Throws std::invalid_argument that names the tensor and its shape if that is not possible.
void check_shape(const std::string& name, const std::vector<std::int64_t>& shape, ElementType type);

/// 1 for a tensor without extents.
std::int64_t rows_of(const std::vector<std::int64_t>& shape);
std::size_t row_bytes_of(const std::vector<std::int64_t>& shape, ElementType type);
inline std::size_t row_bytes_of(const IndexedTensor& tensor) {
  return row_bytes_of(tensor.shape, tensor.type);
}
/// The shape that so many rows of it have.
std::vector<std::int64_t> shape_of_slice(const std::vector<std::int64_t>& shape, std::int64_t rows);
inline std::vector<std::int64_t> shape_of_slice(const IndexedTensor& tensor, std::int64_t rows) {
  return shape_of_slice(tensor.shape, rows);
}
/// All of it in one part.
IndexedTensor tensor_in_part(const TensorRef& tensor, std::size_t part);

struct CheckpointIndex {
  std::int64_t step = 0;
  Lineage lineage = {};
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
