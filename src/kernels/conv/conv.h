#pragma once
// Two-dimensional convolution and its two gradients, bound once and run many times.
//
// `make_conv_*` binds a shape, layouts and pointers and returns a function that does the work. Binding may allocate and
// take milliseconds; running allocates nothing of ours and is single-threaded and deterministic. The caller owns all
// memory, which must outlive the returned function. `scratch` (64-byte aligned, `conv_*_scratch` bytes) holds nothing
// between runs, so kernels that do not run at the same time may share it. One bound function must not run on two
// threads at once; different ones may.
//
// Activations are [N, C, H, W] in the layout that `ConvLayouts` names; weights and their gradients are always plain
// [O, I/groups, KH, KW], the bias is [O]. The layouts {in, out} that a shape supports: {batch8, batch8} (own kernels,
// the fast ones for few channels), {plain, plain}, and where the channels are multiples of 8 {channel8, channel8} and,
// for a first layer, {plain, channel8}. Lanes of batch8 past N may hold anything on entry.
//
// Throws: BadInput when shape or layouts are impossible (`problem_with` tells beforehand).

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "tensor/layout.h"

namespace echelon::kernels {

struct ConvShape {
  std::int64_t n = 1, c = 1, h = 1, w = 1;  // input
  std::int64_t out_c = 1, kh = 1, kw = 1;
  int stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, dilation_h = 1, dilation_w = 1, groups = 1;

  std::int64_t out_h() const { return (h + 2 * pad_h - dilation_h * (kh - 1) - 1) / stride_h + 1; }
  std::int64_t out_w() const { return (w + 2 * pad_w - dilation_w * (kw - 1) - 1) / stride_w + 1; }
  std::int64_t weights() const { return out_c * (c / groups) * kh * kw; }
  std::int64_t macs() const { return n * out_h() * out_w() * weights(); }  // of one direction; two FLOPs each
  Shape in_shape() const { return {n, c, h, w}; }
  Shape out_shape() const { return {n, out_c, out_h(), out_w()}; }
  Shape weight_shape() const { return {out_c, c / groups, kh, kw}; }
};

struct ConvLayouts {
  Layout in = Layout::plain, out = Layout::plain;
  bool operator==(const ConvLayouts&) const = default;
};

// What is wrong with the shape, in words without the layer's name ("3 groups do not divide 8 channels"); empty if fine.
std::string problem_with(const ConvShape& shape);

// Whether make_conv_* accept these layouts for this shape.
bool supports(const ConvShape& shape, ConvLayouts layouts);

// The layouts in which the three directions together run fastest, the neighbours' wishes aside (figures in conv.cpp).
ConvLayouts preferred_layouts(const ConvShape& shape);

// y = conv(x, w) + bias, then max(., 0) if `relu`. `bias` may be null.
std::size_t conv_forward_scratch(const ConvShape& shape, ConvLayouts layouts);
std::function<void()> make_conv_forward(const ConvShape& shape, ConvLayouts layouts, const float* x, const float* w,
                                        const float* bias, bool relu, float* y, std::byte* scratch);

// dx = the gradient with respect to the input.
std::size_t conv_backward_data_scratch(const ConvShape& shape, ConvLayouts layouts);
std::function<void()> make_conv_backward_data(const ConvShape& shape, ConvLayouts layouts, const float* dy,
                                              const float* w, float* dx, std::byte* scratch);

// dw, and db unless it is null: the gradients with respect to weights and bias, summed over this batch.
std::size_t conv_backward_weights_scratch(const ConvShape& shape, ConvLayouts layouts);
std::function<void()> make_conv_backward_weights(const ConvShape& shape, ConvLayouts layouts, const float* x,
                                                 const float* dy, float* dw, float* db, std::byte* scratch);

// The readable twins: plain layout, double sums, naive loops.
void ref_conv_forward(const ConvShape& shape, const float* x, const float* w, const float* bias, bool relu, float* y);
void ref_conv_backward_data(const ConvShape& shape, const float* dy, const float* w, float* dx);
void ref_conv_backward_weights(const ConvShape& shape, const float* x, const float* dy, float* dw, float* db);

}  // namespace echelon::kernels
