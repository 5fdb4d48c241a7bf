// The pinball loss. A row has a few quantiles, too few for vectors; its work is nothing beside the network's.
#include "kernels/loss/loss.h"

namespace echelon::kernels {

double quantile_loss(const float* x, const float* t, const float* levels, std::size_t rows, std::size_t quantiles) {
  double total = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    double row = 0;
    for (std::size_t q = 0; q < quantiles; ++q) {
      const double d = static_cast<double>(t[r]) - static_cast<double>(x[r * quantiles + q]);
      row += d * (static_cast<double>(levels[q]) - (d < 0 ? 1 : 0));
    }
    total += row;
  }
  return total;
}

void quantile_loss_grad(const float* x, const float* t, const float* levels, float scale, float* dx, std::size_t rows,
                        std::size_t quantiles) {
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t q = 0; q < quantiles; ++q) {
      const float d = t[r] - x[r * quantiles + q];
      // d itself where it is neither above nor below: 0, or NaN.
      dx[r * quantiles + q] = d > 0 ? -scale * levels[q] : d < 0 ? scale * (1 - levels[q]) : d;
    }
}

}  // namespace echelon::kernels
