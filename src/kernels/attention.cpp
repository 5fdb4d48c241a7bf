#include "kernels/attention.h"

#include <algorithm>
#include <cmath>

#include "kernels/gemm.h"
#include "tensor/buffer.h"

namespace echelon::kernels {
namespace {

float scale_of(const AttentionShape& s) { return s.scale != 0 ? s.scale : 1 / std::sqrt(static_cast<float>(s.dim)); }

std::int64_t visible(const AttentionShape& s, std::int64_t i) { return s.causal ? i + 1 + s.keys - s.queries : s.keys; }

}  // namespace

AttentionInput split_qkv(const AttentionShape& s, const float* qkv) {
  const std::int64_t wide = s.heads * s.dim;
  const HeadStrides at{s.queries * 3 * wide, 3 * wide};
  return {qkv, qkv + wide, qkv + 2 * wide, at, at};
}

AttentionGrad split_dqkv(const AttentionShape& s, float* dqkv) {
  const std::int64_t wide = s.heads * s.dim;
  const HeadStrides at{s.queries * 3 * wide, 3 * wide};
  return {dqkv, dqkv + wide, dqkv + 2 * wide, at, at};
}

std::size_t attention_scratch(const AttentionShape& s) {
  return aligned(static_cast<std::size_t>(2 * s.queries * s.keys) * sizeof(float)) + (16 << 20);
}

std::size_t attention_saved(const AttentionShape& s) {
  return aligned(static_cast<std::size_t>(s.batch * s.heads * s.queries) * sizeof(float));
}

void attention_forward(const AttentionShape& s, const AttentionInput& in, float* out, float* saved, void* scratch) {
  float* p = static_cast<float*>(scratch);
  void* gemm_at = p + (2 * s.queries * s.keys + 15) / 16 * 16;
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.heads; ++h) {
      const float *q = in.q + b * in.q_at.batch + h * s.dim, *k = in.k + b * in.kv_at.batch + h * s.dim;
      const float* v = in.v + b * in.kv_at.batch + h * s.dim;
      gemm({.trans_b = true, .m = s.queries, .n = s.keys, .k = s.dim, .alpha = scale_of(s)}, q, in.q_at.row, k,
           in.kv_at.row, p, s.keys, gemm_at);
      for (std::int64_t i = 0; i < s.queries; ++i) {
        float* row = p + i * s.keys;
        const std::int64_t n = visible(s, i);
        const float most = *std::max_element(row, row + n);
        float sum = 0;
        for (std::int64_t j = 0; j < n; ++j) sum += row[j] = std::exp(row[j] - most);
        for (std::int64_t j = 0; j < n; ++j) row[j] /= sum;
        std::fill(row + n, row + s.keys, 0.0f);
        saved[(b * s.heads + h) * s.queries + i] = most + std::log(sum);
      }
      gemm({.m = s.queries, .n = s.dim, .k = s.keys}, p, s.keys, v, in.kv_at.row,
           out + (b * s.queries * s.heads + h) * s.dim, s.heads * s.dim, gemm_at);
    }
}

void attention_backward(const AttentionShape& s, const AttentionInput& in, const float* out, const float* saved,
                        const float* dout, const AttentionGrad& grad, void* scratch) {
  float *p = static_cast<float*>(scratch), *dp = p + s.queries * s.keys;
  void* gemm_at = p + (2 * s.queries * s.keys + 15) / 16 * 16;
  const std::int64_t wide = s.heads * s.dim;
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.heads; ++h) {
      const float *q = in.q + b * in.q_at.batch + h * s.dim, *k = in.k + b * in.kv_at.batch + h * s.dim;
      const float *v = in.v + b * in.kv_at.batch + h * s.dim, *d = dout + b * s.queries * wide + h * s.dim;
      const float* o = out + b * s.queries * wide + h * s.dim;
      gemm({.trans_b = true, .m = s.queries, .n = s.keys, .k = s.dim, .alpha = scale_of(s)}, q, in.q_at.row, k,
           in.kv_at.row, p, s.keys, gemm_at);
      gemm({.trans_b = true, .m = s.queries, .n = s.keys, .k = s.dim}, d, wide, v, in.kv_at.row, dp, s.keys, gemm_at);
      for (std::int64_t i = 0; i < s.queries; ++i) {
        const std::int64_t n = visible(s, i);
        const float lse = saved[(b * s.heads + h) * s.queries + i];
        float mean = 0;
        for (std::int64_t e = 0; e < s.dim; ++e) mean += d[i * wide + e] * o[i * wide + e];
        for (std::int64_t j = 0; j < s.keys; ++j) {
          float &pij = p[i * s.keys + j], &dij = dp[i * s.keys + j];
          pij = j < n ? std::exp(pij - lse) : 0.0f;
          dij = j < n ? scale_of(s) * pij * (dij - mean) : 0.0f;
        }
      }
      float* dq = grad.dq + b * grad.dq_at.batch + h * s.dim;
      float *dk = grad.dk + b * grad.dkv_at.batch + h * s.dim, *dv = grad.dv + b * grad.dkv_at.batch + h * s.dim;
      gemm({.m = s.queries, .n = s.dim, .k = s.keys}, dp, s.keys, k, in.kv_at.row, dq, grad.dq_at.row, gemm_at);
      gemm({.trans_a = true, .m = s.keys, .n = s.dim, .k = s.queries}, dp, s.keys, q, in.q_at.row, dk, grad.dkv_at.row,
           gemm_at);
      gemm({.trans_a = true, .m = s.keys, .n = s.dim, .k = s.queries}, p, s.keys, d, wide, dv, grad.dkv_at.row,
           gemm_at);
    }
}

}  // namespace echelon::kernels
