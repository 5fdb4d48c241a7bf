#include "kernels/conv/unshared_conv.h"

#include <algorithm>

#include "kernels/gemm/gemm.h"

namespace echelon::kernels {

namespace {

std::size_t rounded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }
std::size_t floats(std::int64_t count) { return rounded(static_cast<std::size_t>(count) * sizeof(float)); }

// What a place sees and gives, over the samples.
struct PlaceScratch {
  PlaceScratch(const UnsharedConvShape& s, std::byte* scratch)
      : windows(reinterpret_cast<float*>(scratch)),
        outputs(reinterpret_cast<float*>(scratch + floats(s.n * s.window()))),
        rest(scratch + floats(s.n * s.window()) + floats(s.n * s.out_c)) {}
  float *windows, *outputs;  // [n, window], [n, out_c]
  std::byte* rest;
};

Gemm forward_product(const UnsharedConvShape& s) { return {.trans_b = true, .m = s.n, .n = s.out_c, .k = s.window()}; }
Gemm data_product(const UnsharedConvShape& s) { return {.m = s.n, .n = s.window(), .k = s.out_c}; }
Gemm weights_product(const UnsharedConvShape& s) { return {.trans_a = true, .m = s.out_c, .n = s.window(), .k = s.n}; }

// Calls visit(a number of the window at (i, j), its element of the image or null outside of it), in the window's order.
template <typename Image, typename Visit>
void for_each_in_window(const UnsharedConvShape& s, std::int64_t i, std::int64_t j, Image* image, const Visit& visit) {
  std::int64_t at = 0;
  for (std::int64_t c = 0; c < s.c; ++c)
    for (std::int64_t r = 0; r < s.kh; ++r)
      for (std::int64_t q = 0; q < s.kw; ++q, ++at) {
        const std::int64_t row = i * s.stride_h - s.pad_h + r, column = j * s.stride_w - s.pad_w + q;
        const bool inside = row >= 0 && row < s.h && column >= 0 && column < s.w;
        visit(at, inside ? image + (c * s.h + row) * s.w + column : nullptr);
      }
}

void gather_windows(const UnsharedConvShape& s, std::int64_t i, std::int64_t j, const float* x, float* windows) {
  for (std::int64_t n = 0; n < s.n; ++n) {
    float* to = windows + n * s.window();
    for_each_in_window(s, i, j, x + n * s.c * s.h * s.w,
                       [&](std::int64_t at, const float* from) { to[at] = from ? *from : 0.0f; });
  }
}

// y[n, o, i, j] for one place, as [n, o].
template <typename Image, typename Visit>
void for_each_output(const UnsharedConvShape& s, std::int64_t i, std::int64_t j, Image* y, const Visit& visit) {
  const std::int64_t pixels = s.out_h() * s.out_w(), place = i * s.out_w() + j;
  for (std::int64_t k = 0; k < s.n * s.out_c; ++k) visit(k, y[k * pixels + place]);
}

}  // namespace

std::size_t unshared_conv_scratch(const UnsharedConvShape& s) {
  return floats(s.n * s.window()) + floats(s.n * s.out_c) +
         rounded(std::max(
             {gemm_scratch(forward_product(s)), gemm_scratch(data_product(s)), gemm_scratch(weights_product(s))}));
}

void unshared_conv(const UnsharedConvShape& s, const float* x, const float* w, const float* bias, float* y,
                   std::byte* scratch) {
  const PlaceScratch p(s, scratch);
  for (std::int64_t i = 0; i < s.out_h(); ++i)
    for (std::int64_t j = 0; j < s.out_w(); ++j, w += s.out_c * s.window()) {
      gather_windows(s, i, j, x, p.windows);
      gemm(forward_product(s), p.windows, s.window(), w, s.window(), p.outputs, s.out_c, p.rest);
      for_each_output(s, i, j, y,
                      [&](std::int64_t k, float& to) { to = p.outputs[k] + (bias ? bias[k % s.out_c] : 0.0f); });
      if (bias) bias += s.out_c;
    }
}

void unshared_conv_grad_data(const UnsharedConvShape& s, const float* dy, const float* w, float* dx,
                             std::byte* scratch) {
  const PlaceScratch p(s, scratch);
  std::fill_n(dx, s.n * s.c * s.h * s.w, 0.0f);
  for (std::int64_t i = 0; i < s.out_h(); ++i)
    for (std::int64_t j = 0; j < s.out_w(); ++j, w += s.out_c * s.window()) {
      for_each_output(s, i, j, dy, [&](std::int64_t k, float from) { p.outputs[k] = from; });
      gemm(data_product(s), p.outputs, s.out_c, w, s.window(), p.windows, s.window(), p.rest);
      for (std::int64_t n = 0; n < s.n; ++n)
        for_each_in_window(s, i, j, dx + n * s.c * s.h * s.w, [&](std::int64_t at, float* to) {
          if (to) *to += p.windows[n * s.window() + at];
        });
    }
}

void unshared_conv_grad_weights(const UnsharedConvShape& s, const float* x, const float* dy, float* dw, float* dbias,
                                std::byte* scratch) {
  const PlaceScratch p(s, scratch);
  for (std::int64_t i = 0; i < s.out_h(); ++i)
    for (std::int64_t j = 0; j < s.out_w(); ++j, dw += s.out_c * s.window()) {
      gather_windows(s, i, j, x, p.windows);
      for_each_output(s, i, j, dy, [&](std::int64_t k, float from) { p.outputs[k] = from; });
      gemm(weights_product(s), p.outputs, s.out_c, p.windows, s.window(), dw, s.window(), p.rest);
      if (!dbias) continue;
      std::fill_n(dbias, s.out_c, 0.0f);
      for (std::int64_t k = 0; k < s.n * s.out_c; ++k) dbias[k % s.out_c] += p.outputs[k];
      dbias += s.out_c;
    }
}

}  // namespace echelon::kernels
