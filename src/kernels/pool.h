#pragma once
// Max and average pooling and their gradients, in any layout; input and output have the same one. Global average
// pooling is average pooling with a kernel of the image's size.
//
// Max pooling takes the first of equal maxima and passes NaN on, as PyTorch does. Its forward pass notes where in the
// window each maximum was found (one number of `pool_index_type` for each output), so that the backward pass needs
// neither x nor y. Average pooling divides by the whole kernel (`average`) or only by the pixels inside the image
// (`average_inside`, PyTorch's count_include_pad=False). Windows that do not fit are dropped (ceil_mode=False).
//
// Thread-safe, allocates nothing, deterministic. Lanes of batch8 past N may hold anything and come out as anything.

#include <cstddef>
#include <cstdint>
#include <string>

#include "tensor/dtype.h"
#include "tensor/layout.h"

namespace echelon::kernels {

enum class PoolKind : std::uint8_t { max, average, average_inside };

struct PoolShape {
  std::int64_t n = 1, c = 1, h = 1, w = 1;
  std::int64_t kh = 2, kw = 2;
  int stride_h = 2, stride_w = 2, pad_h = 0, pad_w = 0;

  std::int64_t out_h() const { return (h + 2 * pad_h - kh) / stride_h + 1; }
  std::int64_t out_w() const { return (w + 2 * pad_w - kw) / stride_w + 1; }
  Shape in_shape() const { return {n, c, h, w}; }
  Shape out_shape() const { return {n, c, out_h(), out_w()}; }
};

// What is wrong with the shape, in words without the layer's name; empty if nothing is.
std::string problem_with(const PoolShape& shape);

// Of what max pooling keeps for each output from forward to backward: a byte where the window has at most 256 pixels.
DType pool_index_type(const PoolShape& shape);

// `indices` may be null when there will be no backward pass.
void pool_forward(const PoolShape& shape, PoolKind kind, Layout layout, const float* x, float* y, std::byte* indices);
void pool_backward(const PoolShape& shape, PoolKind kind, Layout layout, const float* dy, const std::byte* indices,
                   float* dx);

// The readable twins, plain layout; the backward pass of max pooling finds the maxima again in x.
void ref_pool_forward(const PoolShape& shape, PoolKind kind, const float* x, float* y);
void ref_pool_backward(const PoolShape& shape, PoolKind kind, const float* x, const float* dy, float* dx);

}  // namespace echelon::kernels
