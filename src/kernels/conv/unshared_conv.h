#pragma once
// Unshared convolution: a locally connected layer. It looks at windows as a convolution does, but every place of the
// output has weights of its own.
//   y[n, o, i, j] = bias[i, j, o] + sum over the window at (i, j) of x[n, ...] * w[i, j, o, ...]
// Images are plain [n, c, h, w]; weights are [out_h, out_w, out_c, c * kh * kw], in the order of the window's channels,
// rows and columns. Each place is one matrix product over the samples, so the rows of an image can be computed apart
// with the same bits. Thread-safe, deterministic, allocates nothing: `scratch` (64-byte aligned,
// `unshared_conv_scratch` bytes, for any direction) is the caller's and holds nothing between calls.

#include <cstddef>
#include <cstdint>

namespace echelon::kernels {

struct UnsharedConvShape {
  std::int64_t n = 1, c = 1, h = 1, w = 1, out_c = 1, kh = 1, kw = 1;
  std::int64_t stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0;

  std::int64_t out_h() const { return (h + 2 * pad_h - kh) / stride_h + 1; }
  std::int64_t out_w() const { return (w + 2 * pad_w - kw) / stride_w + 1; }
  std::int64_t window() const { return c * kh * kw; }
};

std::size_t unshared_conv_scratch(const UnsharedConvShape& s);
void unshared_conv(const UnsharedConvShape& s, const float* x, const float* w, const float* bias /* or null */,
                   float* y, std::byte* scratch);
void unshared_conv_grad_data(const UnsharedConvShape& s, const float* dy, const float* w, float* dx,
                             std::byte* scratch);
void unshared_conv_grad_weights(const UnsharedConvShape& s, const float* x, const float* dy, float* dw,
                                float* dbias /* or null */, std::byte* scratch);

void ref_unshared_conv(const UnsharedConvShape& s, const float* x, const float* w, const float* bias, float* y);
void ref_unshared_conv_grad_data(const UnsharedConvShape& s, const float* dy, const float* w, float* dx);
void ref_unshared_conv_grad_weights(const UnsharedConvShape& s, const float* x, const float* dy, float* dw,
                                    float* dbias);

}  // namespace echelon::kernels
