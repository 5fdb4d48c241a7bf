#pragma once
// Batch norm over images of which every party has some rows: what each computes between the sums over all parties.
// x[n, channels, pixels] in plain memory. `total` and `squares`[channels] are sums over all parties' parts: of x, and
// of the squared distances from the mean. Sums over a part run in double, in one fixed order. Single-threaded,
// allocates nothing, thread-safe.

#include <cstddef>

namespace echelon::kernels {

struct NormPart {
  std::size_t n = 0, channels = 0, pixels = 0;  // of the part
  double count = 0;                             // of numbers in a channel of all parts
  float eps = 0;
};

// squares[c] = the sum of (x - total / count)^2 over the part; and its gradient dx = 2 (x - mean) d[c].
void part_squares(const NormPart& p, const float* x, const float* total, float* squares);
void part_squares_grad(const NormPart& p, const float* x, const float* total, const float* d, float* dx);

// y = gamma (x - mean) / sqrt(squares / count + eps) + beta
void part_normalise(const NormPart& p, const float* x, const float* gamma, const float* beta, const float* total,
                    const float* squares, float* y);

// The gradient with total and squares taken as inputs: each of [channels] is the part's share.
struct NormPartGrad {
  float *dx, *d_gamma, *d_beta, *d_total, *d_squares;
};
void part_normalise_grad(const NormPart& p, const float* x, const float* gamma, const float* total,
                         const float* squares, const float* dy, const NormPartGrad& grad);

// x[n, c, i] = d[c]: the gradient of a channel's sum.
void repeat_channels(const NormPart& p, const float* d, float* dx);

}  // namespace echelon::kernels
