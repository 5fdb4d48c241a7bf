#pragma once
// The extents of a tensor, outermost first; at most six, none negative. A value type without heap memory.

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace echelon {

class Shape {
 public:
  static constexpr int max_rank = 6;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims);
  explicit Shape(std::span<const std::int64_t> dims);

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return dims_[static_cast<std::size_t>(axis < 0 ? axis + rank_ : axis)]; }
  std::int64_t& operator[](int axis) { return dims_[static_cast<std::size_t>(axis < 0 ? axis + rank_ : axis)]; }
  std::int64_t elements() const;  // 1 for a scalar
  std::span<const std::int64_t> dims() const { return {dims_.data(), static_cast<std::size_t>(rank_)}; }

  bool operator==(const Shape& other) const;

 private:
  std::array<std::int64_t, max_rank> dims_{};
  int rank_ = 0;
};

std::string to_string(const Shape& shape);  // "[64, 3, 32, 32]"

}  // namespace echelon
