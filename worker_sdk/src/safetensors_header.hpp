// The header of a safetensors file: pure, bytes in and values out.
//
//   file     = length header data
//   length   = u64, little-endian: bytes of `header`, at most 100,000,000
//   header   = JSON object, then spaces up to a multiple of 8 bytes of length + header
//   object   = { ["__metadata__": {text: text, ...},] name: tensor, ... }, no name twice
//   tensor   = { "dtype": "F32" | ..., "shape": [extent, ...], "data_offsets": [begin, end] }
//   data     = the tensors' bytes, row-major and little-endian, without holes or overlaps; begin and end
//   count
//              from the start of `data`
//
// Example, one tensor "a" of two U8 (1, 2), 66 bytes in all: 38 00 00 00 00 00 00 00
//   {"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}<3 spaces> 01 02
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/worker/checkpoint.hpp"

namespace muster::worker {

constexpr std::uint64_t safetensors_length_bytes = 8;
constexpr std::uint64_t max_safetensors_header_bytes = 100'000'000;

struct SafetensorsPlan {
  std::string head;                ///< length and header
  std::vector<std::size_t> order;  ///< the tensors as they follow each other in the data
};

/// The header lists the tensors in the given order. In the data those with larger elements come first, so
/// that each is aligned. Throws CheckpointError for a name that is there twice, is "__metadata__" or not
/// UTF-8, and std::invalid_argument for a shape that is not possible.
SafetensorsPlan plan_safetensors(std::span<const TensorRef> tensors,
                                 const std::map<std::string, std::string>& metadata);

struct SafetensorsEntry {
  std::string name;
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;  ///< from the start of the data
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  std::vector<SafetensorsEntry> entries;  ///< in the header's order
};

/// `length` is the file's first 8 bytes. Returns the header's length. Throws CheckpointError.
std::uint64_t decode_safetensors_length(std::span<const std::byte> length, std::uint64_t file_bytes);

/// Throws CheckpointError that says what is wrong with which tensor.
SafetensorsHeader decode_safetensors_header(std::string_view header, std::uint64_t data_bytes);

}  // namespace muster::worker
