#pragma once
// A dense, row-major tensor that owns its memory: what datasets hand out, checkpoints store and tests compare.
// (Inside a training step there are no Tensors, only planned memory: see graph/program.h.)

#include <span>
#include <vector>

#include "tensor/buffer.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace echelon {

class Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, Shape shape)
      : dtype_(dtype), shape_(shape), memory_(static_cast<std::size_t>(shape.elements()) * size_of(dtype)) {}

  template <typename T>
  static Tensor of(Shape shape, const std::vector<T>& values) {
    Tensor t(DTypeOf<T>::value, shape);
    std::copy(values.begin(), values.end(), t.template as<T>().begin());
    return t;
  }

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::int64_t elements() const { return shape_.elements(); }
  std::span<std::byte> bytes() { return {memory_.data(), memory_.bytes()}; }
  std::span<const std::byte> bytes() const { return {memory_.data(), memory_.bytes()}; }
  template <typename T>
  std::span<T> as() {
    return memory_.as<T>();
  }
  template <typename T>
  std::span<const T> as() const {
    return memory_.as<T>();
  }

 private:
  DType dtype_ = DType::f32;
  Shape shape_;
  Buffer memory_;
};

}  // namespace echelon
