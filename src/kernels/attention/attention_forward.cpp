#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/attention/attention.h"
#include "kernels/attention/attention_layout.h"
#include "kernels/simd/simd_targets_512.h"
#include "tensor/buffer.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/attention_forward.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/attention/attention_head-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::HWY_NAMESPACE {

// The softmax of a row of n scores but for its denominator.
struct Softmax {
  float sum, log_sum;  // the denominator, and its log with the greatest score put back
};

// Scores become exp(scale * score - greatest), zeros past the end.
Softmax exponentials(float* HWY_RESTRICT row, std::int64_t n, float scale) {
  const float least = (scale > 0 ? -1 : 1) * std::numeric_limits<float>::infinity();
  for (std::int64_t j = 0; j < lanes; ++j) row[n + j] = least;  // so that whole vectors will do
  const V factor = set(scale);
  V most = set(-std::numeric_limits<float>::infinity());
  for (std::int64_t j = 0; j < n; j += lanes) most = hn::Max(most, hn::Mul(hn::LoadU(D(), row + j), factor));
  most = hn::MaxOfLanes(D(), most);
  SumOfEights sum;
  for (std::int64_t j = 0; j < n; j += lanes) {
    const V e = exp_below_zero(hn::MulSub(hn::LoadU(D(), row + j), factor, most));
    sum.add(e, static_cast<std::size_t>(n - j));
    hn::StoreU(e, D(), row + j);
  }
  clear_past(row, n);
  const float total = sum.total();
  return {total, hn::GetLane(most) + std::log(total)};
}

void one_head(const AttentionShape& s, const AttentionInput& in, std::int64_t b, std::int64_t h,
              const HeadRows<float>& out, float* log_sums, const AttentionScratch& scratch) {
  const std::int64_t kv = b * in.kv_at.batch + h * s.dim;
  const HeadRows<const float> q{in.q + b * in.q_at.batch + h * s.dim, in.q_at.row};
  pack_transposed({in.k + kv, in.kv_at.row}, s.keys, s.dim, scratch.keys_transposed());
  pack_rows({in.v + kv, in.kv_at.row}, s.keys, s.dim, scratch.rows(0));
  const float scale = scale_of(s);
  float* scores = scratch.scores(0);
  float* sums = scratch.scores(1);
  for (std::int64_t i0 = 0, block = forward_block(s); i0 < s.queries; i0 += block) {
    const std::int64_t rows = std::min(block, s.queries - i0);
    multiply_by_keys(s, i0, rows, q, scratch.keys_transposed(), scores);
    for (std::int64_t i = 0; i < rows; ++i) {
      const Softmax softmax = exponentials(scores + i * score_row(s), visible(s, i0 + i), scale);
      sums[i] = softmax.sum, log_sums[i0 + i] = softmax.log_sum;
    }
    multiply_scores(s, i0, rows, scores, scratch.rows(0), out);
    for (std::int64_t i = 0; i < rows; ++i) {
      float* to = out.at(i0 + i);
      const V share = set(1 / sums[i]);
      for_each_vector(static_cast<std::size_t>(s.dim),
                      [&](const auto& at) HWY_ATTR { at.store(hn::Mul(at.load(to), share), to); });
    }
  }
}

void AttentionForward(const AttentionShape& s, const AttentionInput& in, float* out, float* saved, float* memory) {
  const AttentionScratch scratch(s, memory);
  const std::int64_t wide = s.heads * s.dim;
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.heads; ++h)
      one_head(s, in, b, h, {out + b * s.queries * wide + h * s.dim, wide}, saved + (b * s.heads + h) * s.queries,
               scratch);
}

}  // namespace echelon::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echelon::kernels {

HWY_EXPORT(AttentionForward);

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

std::size_t attention_scratch(const AttentionShape& s) { return AttentionScratch(s, nullptr).bytes(); }

std::size_t attention_saved(const AttentionShape& s) {
  return aligned(static_cast<std::size_t>(s.batch * s.heads * s.queries) * sizeof(float));
}

void attention_forward(const AttentionShape& s, const AttentionInput& in, float* out, float* saved, void* scratch) {
  if (s.queries == 0 || s.keys == 0 || s.dim == 0) return;
  HWY_DYNAMIC_DISPATCH(AttentionForward)(s, in, out, saved, static_cast<float*>(scratch));
}

}  // namespace echelon::kernels
#endif
