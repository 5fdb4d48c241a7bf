#include <algorithm>

#include "kernels/conv/unshared_conv.h"

namespace echelon::kernels {

namespace {

// Calls visit(index of the weight, of the input, of the output) for every product that there is.
template <typename Visit>
void for_each_product(const UnsharedConvShape& s, const Visit& visit) {
  for (std::int64_t n = 0; n < s.n; ++n)
    for (std::int64_t o = 0; o < s.out_c; ++o)
      for (std::int64_t i = 0; i < s.out_h(); ++i)
        for (std::int64_t j = 0; j < s.out_w(); ++j)
          for (std::int64_t c = 0; c < s.c; ++c)
            for (std::int64_t r = 0; r < s.kh; ++r)
              for (std::int64_t q = 0; q < s.kw; ++q) {
                const std::int64_t row = i * s.stride_h + r - s.pad_h, column = j * s.stride_w + q - s.pad_w;
                if (row < 0 || row >= s.h || column < 0 || column >= s.w) continue;
                const std::int64_t place = i * s.out_w() + j;
                visit((place * s.out_c + o) * s.window() + (c * s.kh + r) * s.kw + q,
                      ((n * s.c + c) * s.h + row) * s.w + column, (n * s.out_c + o) * s.out_h() * s.out_w() + place);
              }
}

std::int64_t outputs_of(const UnsharedConvShape& s) { return s.n * s.out_c * s.out_h() * s.out_w(); }

// Of an output, the bias that it has.
std::int64_t bias_of(const UnsharedConvShape& s, std::int64_t output) {
  const std::int64_t pixels = s.out_h() * s.out_w();
  return output % pixels * s.out_c + output / pixels % s.out_c;
}

}  // namespace

void ref_unshared_conv(const UnsharedConvShape& s, const float* x, const float* w, const float* bias, float* y) {
  for (std::int64_t k = 0; k < outputs_of(s); ++k) y[k] = bias ? bias[bias_of(s, k)] : 0.0f;
  for_each_product(s, [&](std::int64_t weight, std::int64_t in, std::int64_t out) { y[out] += x[in] * w[weight]; });
}

void ref_unshared_conv_grad_data(const UnsharedConvShape& s, const float* dy, const float* w, float* dx) {
  std::fill_n(dx, s.n * s.c * s.h * s.w, 0.0f);
  for_each_product(s, [&](std::int64_t weight, std::int64_t in, std::int64_t out) { dx[in] += dy[out] * w[weight]; });
}

void ref_unshared_conv_grad_weights(const UnsharedConvShape& s, const float* x, const float* dy, float* dw,
                                    float* dbias) {
  std::fill_n(dw, s.out_h() * s.out_w() * s.out_c * s.window(), 0.0f);
  for_each_product(s, [&](std::int64_t weight, std::int64_t in, std::int64_t out) { dw[weight] += x[in] * dy[out]; });
  if (!dbias) return;
  std::fill_n(dbias, s.out_h() * s.out_w() * s.out_c, 0.0f);
  for (std::int64_t k = 0; k < outputs_of(s); ++k) dbias[bias_of(s, k)] += dy[k];
}

}  // namespace echelon::kernels
