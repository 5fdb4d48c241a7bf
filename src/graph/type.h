#pragma once
// What is known of a value before anything runs: element type, logical shape, and how it lies in memory.

#include <string>

#include "tensor/dtype.h"
#include "tensor/layout.h"
#include "tensor/shape.h"

namespace echelon {

struct Type {
  DType dtype = DType::f32;
  Shape shape;
  Layout layout = Layout::plain;

  std::int64_t elements() const { return shape.elements(); }
  std::size_t bytes() const { return static_cast<std::size_t>(stored_elements(shape, layout)) * size_of(dtype); }
  bool operator==(const Type&) const = default;
};

inline Type f32(Shape shape) { return {DType::f32, shape, Layout::plain}; }
inline Type i32(Shape shape) { return {DType::i32, shape, Layout::plain}; }

std::string to_string(const Type& type);  // "f32[64, 3, 32, 32] channel8"

}  // namespace echelon
