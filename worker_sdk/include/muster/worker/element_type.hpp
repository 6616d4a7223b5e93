// The element types that tensors, collectives and checkpoints share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace muster::worker {

enum class ElementType : std::uint8_t { f32, f64, f16, bf16, i8, u8, i32, i64 };

/// In bytes.
constexpr std::size_t size_of(ElementType type) {
  switch (type) {
    case ElementType::f32:
    case ElementType::i32:
      return 4;
    case ElementType::f64:
    case ElementType::i64:
      return 8;
    case ElementType::f16:
    case ElementType::bf16:
      return 2;
    case ElementType::i8:
    case ElementType::u8:
      return 1;
  }
  return 0;
}

/// As safetensors writes it: "F32", "F64", "F16", "BF16", "I8", "U8", "I32", "I64".
constexpr std::string_view name_of(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return "F32";
    case ElementType::f64:
      return "F64";
    case ElementType::f16:
      return "F16";
    case ElementType::bf16:
      return "BF16";
    case ElementType::i8:
      return "I8";
    case ElementType::u8:
      return "U8";
    case ElementType::i32:
      return "I32";
    case ElementType::i64:
      return "I64";
  }
  return "?";
}

/// The other way round; nothing for a name that is none of these.
constexpr std::optional<ElementType> element_type_of(std::string_view name) {
  using enum ElementType;
  for (auto type : {f32, f64, f16, bf16, i8, u8, i32, i64})
    if (name_of(type) == name) return type;
  return std::nullopt;
}

}  // namespace muster::worker
