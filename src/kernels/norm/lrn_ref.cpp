// The readable twins of local response normalisation.
#include <algorithm>
#include <cmath>

#include "kernels/norm/lrn.h"

namespace echelon::kernels {
namespace {

double s_of(const LrnShape& s, const float* x, std::int64_t n, std::int64_t c, std::int64_t p) {
  double sum = 0;
  for (std::int64_t i = std::max<std::int64_t>(0, c - s.size / 2); i <= std::min(s.c - 1, c + (s.size - 1) / 2); ++i) {
    const double v = x[(n * s.c + i) * s.pixels + p];
    sum += v * v;
  }
  return s.k + static_cast<double>(s.alpha) / s.size * sum;
}

}  // namespace

void ref_lrn_forward(const LrnShape& s, const float* x, float* y) {
  for (std::int64_t n = 0; n < s.n; ++n)
    for (std::int64_t c = 0; c < s.c; ++c)
      for (std::int64_t p = 0; p < s.pixels; ++p) {
        const std::int64_t at = (n * s.c + c) * s.pixels + p;
        y[at] = static_cast<float>(x[at] * std::pow(s_of(s, x, n, c, p), -static_cast<double>(s.beta)));
      }
}

void ref_lrn_backward(const LrnShape& s, const float* x, const float* dy, float* dx) {
  const double beta = s.beta;
  for (std::int64_t n = 0; n < s.n; ++n)
    for (std::int64_t c = 0; c < s.c; ++c)
      for (std::int64_t p = 0; p < s.pixels; ++p) {
        const std::int64_t at = (n * s.c + c) * s.pixels + p;
        double sum = 0;  // over the channels i in whose window c is
        for (std::int64_t i = std::max<std::int64_t>(0, c - (s.size - 1) / 2); i <= std::min(s.c - 1, c + s.size / 2);
             ++i) {
          const std::int64_t other = (n * s.c + i) * s.pixels + p;
          sum += static_cast<double>(dy[other]) * x[other] * std::pow(s_of(s, x, n, i, p), -beta - 1);
        }
        dx[at] = static_cast<float>(dy[at] * std::pow(s_of(s, x, n, c, p), -beta) -
                                    2.0 * s.alpha * beta / s.size * x[at] * sum);
      }
}

}  // namespace echelon::kernels
