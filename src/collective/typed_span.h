#pragma once
// The data that a collective moves or combines: a span of memory and the type of its elements, as MPI's (buffer, count,
// datatype). A view; the caller owns the memory.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace echelon {

enum class ElementType : std::uint8_t { bytes, float32, float64, int32, int64 };  // as in world/label.h

constexpr std::size_t size_of(ElementType type) {
  switch (type) {
    case ElementType::bytes: return 1;
    case ElementType::float32:
    case ElementType::int32: return 4;
    default: return 8;
  }
}
std::string_view to_string(ElementType type);
ElementType element_type(std::string_view name);  // BadInput if there is none of that name

// How the elements of all members are combined. The mean of integers is their sum, divided and rounded towards zero.
enum class Reduction : std::uint8_t { sum, min, max, mean };
std::string_view to_string(Reduction reduction);
Reduction reduction_of(std::string_view name);

template <typename T>
constexpr ElementType element_type_of() {
  using U = std::remove_const_t<T>;
  if constexpr (std::is_same_v<U, std::byte>)
    return ElementType::bytes;
  else if constexpr (std::is_same_v<U, float>)
    return ElementType::float32;
  else if constexpr (std::is_same_v<U, double>)
    return ElementType::float64;
  else if constexpr (std::is_same_v<U, std::int32_t>)
    return ElementType::int32;
  else {
    static_assert(std::is_same_v<U, std::int64_t>, "float32, float64, int32, int64 and bytes can be exchanged");
    return ElementType::int64;
  }
}

struct ConstTypedSpan {
  const std::byte* data = nullptr;
  std::size_t count = 0;
  ElementType type = ElementType::bytes;

  std::size_t bytes() const { return count * size_of(type); }
  ConstTypedSpan part(std::size_t begin, std::size_t n) const { return {data + begin * size_of(type), n, type}; }
};

struct TypedSpan {
  std::byte* data = nullptr;
  std::size_t count = 0;
  ElementType type = ElementType::bytes;

  std::size_t bytes() const { return count * size_of(type); }
  std::span<std::byte> span() const { return {data, bytes()}; }
  TypedSpan part(std::size_t begin, std::size_t n) const { return {data + begin * size_of(type), n, type}; }
  operator ConstTypedSpan() const { return {data, count, type}; }  // NOLINT: what may be changed may be read
};

template <typename T>
TypedSpan typed_span(std::span<T> values) {
  return {reinterpret_cast<std::byte*>(values.data()), values.size(), element_type_of<T>()};
}
template <typename T>
ConstTypedSpan const_typed_span(std::span<T> values) {
  return {reinterpret_cast<const std::byte*>(values.data()), values.size(), element_type_of<T>()};
}

}  // namespace echelon
