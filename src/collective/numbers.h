#pragma once
// Numbers that a collective moves or combines: a piece of memory and what is in it. A view; the caller owns the memory.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace echelon {

enum class NumberType : std::uint8_t { bytes, float32, float64, int32, int64 };  // as in world/label.h

constexpr std::size_t size_of(NumberType type) {
  switch (type) {
    case NumberType::bytes: return 1;
    case NumberType::float32:
    case NumberType::int32: return 4;
    default: return 8;
  }
}
std::string_view to_string(NumberType type);
NumberType number_type(std::string_view name);  // BadInput if there is none of that name

// What becomes of one number from every rank. The mean of integers is their sum divided and rounded towards zero.
enum class Reduction : std::uint8_t { sum, min, max, mean };
std::string_view to_string(Reduction reduction);
Reduction reduction_of(std::string_view name);

template <typename T>
constexpr NumberType number_type_of() {
  using U = std::remove_const_t<T>;
  if constexpr (std::is_same_v<U, std::byte>)
    return NumberType::bytes;
  else if constexpr (std::is_same_v<U, float>)
    return NumberType::float32;
  else if constexpr (std::is_same_v<U, double>)
    return NumberType::float64;
  else if constexpr (std::is_same_v<U, std::int32_t>)
    return NumberType::int32;
  else {
    static_assert(std::is_same_v<U, std::int64_t>, "float32, float64, int32, int64 and bytes can be exchanged");
    return NumberType::int64;
  }
}

struct ConstNumbers {
  const std::byte* data = nullptr;
  std::size_t count = 0;
  NumberType type = NumberType::bytes;

  std::size_t bytes() const { return count * size_of(type); }
  ConstNumbers part(std::size_t begin, std::size_t n) const { return {data + begin * size_of(type), n, type}; }
};

struct Numbers {
  std::byte* data = nullptr;
  std::size_t count = 0;
  NumberType type = NumberType::bytes;

  std::size_t bytes() const { return count * size_of(type); }
  std::span<std::byte> span() const { return {data, bytes()}; }
  Numbers part(std::size_t begin, std::size_t n) const { return {data + begin * size_of(type), n, type}; }
  operator ConstNumbers() const { return {data, count, type}; }  // NOLINT: what may be changed may be read
};

template <typename T>
Numbers numbers(std::span<T> values) {
  return {reinterpret_cast<std::byte*>(values.data()), values.size(), number_type_of<T>()};
}
template <typename T>
ConstNumbers const_numbers(std::span<T> values) {
  return {reinterpret_cast<const std::byte*>(values.data()), values.size(), number_type_of<T>()};
}

}  // namespace echelon
