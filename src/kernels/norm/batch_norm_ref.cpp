// The readable twins of batch normalisation.
#include <cmath>

#include "kernels/norm/batch_norm.h"

namespace echelon::kernels {
namespace {

// Calls act(index) for every element of channel c.
template <typename Act>
void for_channel(const BatchNormShape& s, std::int64_t c, Act act) {
  for (std::int64_t n = 0; n < s.n; ++n)
    for (std::int64_t p = 0; p < s.pixels; ++p) act((n * s.c + c) * s.pixels + p);
}

}  // namespace

void ref_batch_norm_inference(const BatchNormShape& s, const BatchNormInference& a) {
  for (std::int64_t c = 0; c < s.c; ++c) {
    const double rstd = 1 / std::sqrt(static_cast<double>(a.variance[c]) + a.eps);
    for_channel(s, c, [&](auto i) {
      double v = (static_cast<double>(a.x[i]) - a.mean[c]) * rstd * a.gamma[c] + a.beta[c];
      if (a.residual) v += a.residual[i];
      a.y[i] = static_cast<float>(a.relu && v < 0 ? 0 : v);
    });
  }
}

void ref_batch_norm_forward(const BatchNormShape& s, const BatchNormForward& a) {
  const double count = static_cast<double>(s.n * s.pixels);
  for (std::int64_t c = 0; c < s.c; ++c) {
    double sum = 0, squares = 0;
    for_channel(s, c, [&](auto i) { sum += a.x[i]; });
    const double mean = sum / count;
    for_channel(s, c, [&](auto i) { squares += (a.x[i] - mean) * (a.x[i] - mean); });
    const double rstd = 1 / std::sqrt(squares / count + a.eps);
    a.mean[c] = static_cast<float>(mean);
    a.rstd[c] = static_cast<float>(rstd);
    if (a.variance) a.variance[c] = static_cast<float>(squares / count);
    for_channel(s, c, [&](auto i) {
      double v = (a.x[i] - mean) * rstd * a.gamma[c] + a.beta[c];
      if (a.residual) v += a.residual[i];
      a.y[i] = static_cast<float>(a.relu && v < 0 ? 0 : v);
    });
  }
}

void ref_batch_norm_backward(const BatchNormShape& s, const BatchNormBackward& a) {
  const double count = static_cast<double>(s.n * s.pixels);
  for (std::int64_t c = 0; c < s.c; ++c) {
    const double mean = a.mean[c], rstd = a.rstd[c];
    const auto g = [&](auto i) { return a.relu && !(a.y[i] > 0) ? 0.0 : static_cast<double>(a.dy[i]); };
    double sum = 0, dot = 0;
    for_channel(s, c, [&](auto i) { sum += g(i), dot += g(i) * (a.x[i] - mean) * rstd; });
    a.dbeta[c] = static_cast<float>(sum);
    a.dgamma[c] = static_cast<float>(dot);
    for_channel(s, c, [&](auto i) {
      const double d = g(i), normal = (a.x[i] - mean) * rstd;
      if (a.d_residual) a.d_residual[i] = static_cast<float>(d);
      a.dx[i] = static_cast<float>(a.gamma[c] * rstd * (d - sum / count - normal * dot / count));
    });
  }
}

}  // namespace echelon::kernels
