#pragma once
// The element types that tensors hold: float32 for numbers, int32 for indices, uint8 for raw data.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace echelon {

enum class DType : std::uint8_t { f32, i32, u8 };

constexpr std::size_t size_of(DType t) { return t == DType::u8 ? 1 : 4; }

constexpr std::string_view name_of(DType t) {
  switch (t) {
    case DType::f32: return "f32";
    case DType::i32: return "i32";
    case DType::u8: return "u8";
  }
  return "?";
}

template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::u8;
};

}  // namespace echelon
