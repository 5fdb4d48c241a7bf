#pragma once
// Named tensors in somebody else's memory: how weights and optimizer state travel between a trainer and a file.
// Row-major; a view owns nothing and is valid as long as the memory behind it.

#include <cstddef>
#include <span>
#include <string>

#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace echelon {

struct TensorView {  // to read from
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::span<const std::byte> bytes;
};

struct TensorSlot {  // to fill
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::span<std::byte> bytes;
};

}  // namespace echelon
