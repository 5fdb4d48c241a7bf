#include "tensor/shape.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/checked.h"

namespace echelon {

Shape::Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}

Shape::Shape(std::span<const std::int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  if (dims.size() > max_rank) bad_input("a tensor has at most {} dimensions, not {}", max_rank, dims.size());
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

std::int64_t Shape::elements() const {
  std::int64_t n = 1;
  for (const auto d : dims())
    if (__builtin_mul_overflow(n, d, &n))
      throw TooLarge(fmt::format("a tensor of shape {} is too large", to_string(*this)));
  return n;
}

bool Shape::operator==(const Shape& other) const { return std::ranges::equal(dims(), other.dims()); }

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape.dims(), ", ")); }

}  // namespace echelon
