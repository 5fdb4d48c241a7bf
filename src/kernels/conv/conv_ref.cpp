// The readable twins of the convolutions: one visit per (output element, tap).
#include <vector>

#include "kernels/conv/conv.h"

namespace echelon::kernels {
namespace {

// Calls visit(y index, x index, w index, output channel) for every product that a convolution consists of.
template <typename Visit>
void for_each_product(const ConvShape& s, Visit visit) {
  const std::int64_t ci_g = s.c / s.groups, co_g = s.out_c / s.groups, oh = s.out_h(), ow = s.out_w();
  for (std::int64_t n = 0; n < s.n; ++n)
    for (std::int64_t co = 0; co < s.out_c; ++co)
      for (std::int64_t oy = 0; oy < oh; ++oy)
        for (std::int64_t ox = 0; ox < ow; ++ox)
          for (std::int64_t ci = 0; ci < ci_g; ++ci)
            for (std::int64_t ky = 0; ky < s.kh; ++ky)
              for (std::int64_t kx = 0; kx < s.kw; ++kx) {
                const std::int64_t iy = oy * s.stride_h - s.pad_h + ky * s.dilation_h;
                const std::int64_t ix = ox * s.stride_w - s.pad_w + kx * s.dilation_w;
                if (iy < 0 || iy >= s.h || ix < 0 || ix >= s.w) continue;
                visit(((n * s.out_c + co) * oh + oy) * ow + ox,
                      ((n * s.c + co / co_g * ci_g + ci) * s.h + iy) * s.w + ix,
                      ((co * ci_g + ci) * s.kh + ky) * s.kw + kx, co);
              }
}

void narrow(const std::vector<double>& from, float* to) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = static_cast<float>(from[i]);
}

}  // namespace

void ref_conv_forward(const ConvShape& s, const float* x, const float* w, const float* bias, bool relu, float* y) {
  const std::int64_t pixels = s.out_h() * s.out_w();
  std::vector<double> sum(static_cast<std::size_t>(s.n * s.out_c * pixels));
  if (bias)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = bias[static_cast<std::int64_t>(i) / pixels % s.out_c];
  for_each_product(s, [&](auto yi, auto xi, auto wi, auto) {
    sum[static_cast<std::size_t>(yi)] += static_cast<double>(x[xi]) * w[wi];
  });
  if (relu)
    for (double& v : sum) v = v > 0 ? v : 0;
  narrow(sum, y);
}

void ref_conv_backward_data(const ConvShape& s, const float* dy, const float* w, float* dx) {
  std::vector<double> sum(static_cast<std::size_t>(s.n * s.c * s.h * s.w));
  for_each_product(s, [&](auto yi, auto xi, auto wi, auto) {
    sum[static_cast<std::size_t>(xi)] += static_cast<double>(dy[yi]) * w[wi];
  });
  narrow(sum, dx);
}

void ref_conv_backward_weights(const ConvShape& s, const float* x, const float* dy, float* dw, float* db) {
  std::vector<double> sum(static_cast<std::size_t>(s.weights()));
  for_each_product(s, [&](auto yi, auto xi, auto wi, auto) {
    sum[static_cast<std::size_t>(wi)] += static_cast<double>(x[xi]) * dy[yi];
  });
  narrow(sum, dw);
  if (!db) return;
  const std::int64_t pixels = s.out_h() * s.out_w();
  std::vector<double> bias(static_cast<std::size_t>(s.out_c));
  for (std::int64_t i = 0; i < s.n * s.out_c * pixels; ++i)
    bias[static_cast<std::size_t>(i / pixels % s.out_c)] += dy[i];
  narrow(bias, db);
}

}  // namespace echelon::kernels
