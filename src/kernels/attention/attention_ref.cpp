// The readable twins of attention.h: one query of one head at a time, in double.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/attention/attention.h"

namespace echelon::kernels {
namespace {

double dot(const float* a, const float* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t j = 0; j < n; ++j) sum += static_cast<double>(a[j]) * b[j];
  return sum;
}

double scale_of(const AttentionShape& s) { return s.scale != 0 ? s.scale : 1 / std::sqrt(static_cast<double>(s.dim)); }

// The keys that query i sees are 0 .. the returned number - 1.
std::int64_t visible(const AttentionShape& s, std::int64_t i) { return s.causal ? i + 1 + s.keys - s.queries : s.keys; }

std::vector<double> probabilities(const AttentionShape& s, const float* q, const float* keys, std::int64_t key_row,
                                  std::int64_t count) {
  std::vector<double> p(count);
  for (std::int64_t j = 0; j < count; ++j) p[j] = scale_of(s) * dot(q, keys + j * key_row, s.dim);
  const double most = *std::max_element(p.begin(), p.end());
  double sum = 0;
  for (double& e : p) sum += e = std::exp(e - most);
  for (double& e : p) e /= sum;
  return p;
}

}  // namespace

void ref_attention_forward(const AttentionShape& s, const AttentionInput& in, float* out) {
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.heads; ++h)
      for (std::int64_t i = 0; i < s.queries; ++i) {
        const float* keys = in.k + b * in.kv_at.batch + h * s.dim;
        const float* values = in.v + b * in.kv_at.batch + h * s.dim;
        const auto p =
            probabilities(s, in.q + b * in.q_at.batch + i * in.q_at.row + h * s.dim, keys, in.kv_at.row, visible(s, i));
        for (std::int64_t e = 0; e < s.dim; ++e) {
          double sum = 0;
          for (std::size_t j = 0; j < p.size(); ++j) sum += p[j] * values[j * in.kv_at.row + e];
          out[((b * s.queries + i) * s.heads + h) * s.dim + e] = static_cast<float>(sum);
        }
      }
}

void ref_attention_backward(const AttentionShape& s, const AttentionInput& in, const float* dout,
                            const AttentionGrad& grad) {
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.heads; ++h) {
      const std::int64_t at = b * in.kv_at.batch + h * s.dim, d_at = b * grad.dkv_at.batch + h * s.dim;
      std::vector<double> dk(s.keys * s.dim), dv(s.keys * s.dim);
      for (std::int64_t i = 0; i < s.queries; ++i) {
        const float* q = in.q + b * in.q_at.batch + i * in.q_at.row + h * s.dim;
        const float* d = dout + ((b * s.queries + i) * s.heads + h) * s.dim;
        const auto p = probabilities(s, q, in.k + at, in.kv_at.row, visible(s, i));
        std::vector<double> dp(p.size()), dq(s.dim);
        double mean = 0;
        for (std::size_t j = 0; j < p.size(); ++j) mean += p[j] * (dp[j] = dot(d, in.v + at + j * in.kv_at.row, s.dim));
        for (std::size_t j = 0; j < p.size(); ++j) {
          const double ds = scale_of(s) * p[j] * (dp[j] - mean);
          for (std::int64_t e = 0; e < s.dim; ++e) {
            dq[e] += ds * in.k[at + j * in.kv_at.row + e];
            dk[j * s.dim + e] += ds * q[e];
            dv[j * s.dim + e] += p[j] * d[e];
          }
        }
        for (std::int64_t e = 0; e < s.dim; ++e)
          grad.dq[b * grad.dq_at.batch + i * grad.dq_at.row + h * s.dim + e] = static_cast<float>(dq[e]);
      }
      for (std::int64_t j = 0; j < s.keys; ++j)
        for (std::int64_t e = 0; e < s.dim; ++e) {
          grad.dk[d_at + j * grad.dkv_at.row + e] = static_cast<float>(dk[j * s.dim + e]);
          grad.dv[d_at + j * grad.dkv_at.row + e] = static_cast<float>(dv[j * s.dim + e]);
        }
    }
}

}  // namespace echelon::kernels
