// With P the probabilities of one head and D_i = sum of dout_i * out_i, which is the softmax's weighted mean of dP:
//   dP = dout v^T    dS = scale P (dP - D)    dq = dS k    dk = dS^T q    dv = P^T dout
#include <algorithm>
#include <tuple>

#include "kernels/attention/attention.h"
#include "kernels/attention/attention_layout.h"
#include "kernels/simd/simd_targets_512.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/attention_backward.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/attention/attention_head-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::HWY_NAMESPACE {

struct HeadProblem {
  const AttentionShape& s;
  HeadRows<const float> q, k, v, out, dout;
  HeadRows<float> dq, dk, dv;
  const float* log_sums;
  const AttentionScratch& scratch;
};

HWY_INLINE float dot_of_rows(const float* a, const float* b, std::int64_t n) {
  SumOfEights sum;
  for_each_vector(static_cast<std::size_t>(n),
                  [&](const auto& at) HWY_ATTR { sum.add_product(at.load(a), at.load(b), at.count); });
  return sum.total();
}

// Scores become probabilities, and what they receive (dP) becomes dS.
void probabilities(const HeadProblem& p, std::int64_t i0, std::int64_t rows, float* scores, float* received) {
  const V scale = set(scale_of(p.s));
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t n = visible(p.s, i0 + i);
    float *HWY_RESTRICT score = scores + i * score_row(p.s), *HWY_RESTRICT d = received + i * score_row(p.s);
    const V log_sum = set(p.log_sums[i0 + i]);
    const V mean = set(dot_of_rows(p.dout.at(i0 + i), p.out.at(i0 + i), p.s.dim));
    for (std::int64_t j = 0; j < n; j += lanes) {
      // A probability is at most 1: where rounding says a little more, and past the end of the row, no harm is done.
      const V e = exp_below_zero(hn::Min(hn::MulSub(hn::LoadU(D(), score + j), scale, log_sum), set(1.0f)));
      hn::StoreU(e, D(), score + j);
      hn::StoreU(hn::Mul(hn::Mul(e, scale), hn::Sub(hn::LoadU(D(), d + j), mean)), D(), d + j);
    }
    clear_past(score, n), clear_past(d, n);
  }
}

// to[keys] (+)= matrix[rows, visible]^T * panels over dim, whose rows are the queries: strips of keys, each from the
// first query that sees it on. The first block that reaches a key overwrites what was there.
void multiply_transposed(const AttentionShape& s, std::int64_t i0, std::int64_t rows, const float* matrix,
                         const float* panels, const HeadRows<float>& to) {
  const std::int64_t keys = visible(s, i0 + rows - 1), before = i0 == 0 ? 0 : visible(s, i0 - 1);
  // Two ranges of keys: those that earlier blocks have reached, and those that are new here.
  for (const auto& [begin, end, beta] :
       {std::tuple{std::int64_t{0}, std::min(before, keys), 1.0f}, std::tuple{std::min(before, keys), keys, 0.0f}}) {
    if (begin == end) continue;
    const Strips strips(end - begin);
    for (std::int64_t strip = 0, key = begin; strip < strips.count; key += strips.rows(strip++)) {
      const std::int64_t from = s.causal ? std::max<std::int64_t>(0, key - (s.keys - s.queries) - i0) : 0;
      for (std::int64_t e = 0; e < s.dim; e += panel_width)
        run_strip(strips.rows(strip), {.k = rows - from,
                                       .a = matrix + from * score_row(s) + key,
                                       .rs = 1,
                                       .cs = score_row(s),
                                       .b = panels + e * s.queries + (i0 + from) * panel_width,
                                       .c = to.at(key) + e,
                                       .ldc = to.row,
                                       .columns = std::min(panel_width, s.dim - e),
                                       .beta = beta});
    }
  }
}

void one_head_back(const HeadProblem& p) {
  const AttentionShape& s = p.s;
  const AttentionScratch& scratch = p.scratch;
  float *keys = scratch.rows(0), *queries = scratch.rows(1), *outs = scratch.rows(2);
  pack_transposed(p.k, s.keys, s.dim, scratch.keys_transposed());
  pack_transposed(p.v, s.keys, s.dim, scratch.values_transposed());
  pack_rows(p.k, s.keys, s.dim, keys);
  pack_rows(p.q, s.queries, s.dim, queries);
  pack_rows(p.dout, s.queries, s.dim, outs);
  float *scores = scratch.scores(0), *received = scratch.scores(1);
  for (std::int64_t i0 = 0, block = backward_block(s); i0 < s.queries; i0 += block) {
    const std::int64_t rows = std::min(block, s.queries - i0);
    multiply_by_keys(s, i0, rows, p.q, scratch.keys_transposed(), scores);
    multiply_by_keys(s, i0, rows, p.dout, scratch.values_transposed(), received);
    probabilities(p, i0, rows, scores, received);
    multiply_scores(s, i0, rows, received, keys, p.dq);
    multiply_transposed(s, i0, rows, received, queries, p.dk);
    multiply_transposed(s, i0, rows, scores, outs, p.dv);
  }
}

void AttentionBackward(const AttentionShape& s, const AttentionInput& in, const float* out, const float* saved,
                       const float* dout, const AttentionGrad& grad, float* memory) {
  const AttentionScratch scratch(s, memory);
  const std::int64_t wide = s.heads * s.dim;
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.heads; ++h) {
      const std::int64_t head = h * s.dim, kv = b * in.kv_at.batch + head, dkv = b * grad.dkv_at.batch + head;
      one_head_back({s,
                     {in.q + b * in.q_at.batch + head, in.q_at.row},
                     {in.k + kv, in.kv_at.row},
                     {in.v + kv, in.kv_at.row},
                     {out + b * s.queries * wide + head, wide},
                     {dout + b * s.queries * wide + head, wide},
                     {grad.dq + b * grad.dq_at.batch + head, grad.dq_at.row},
                     {grad.dk + dkv, grad.dkv_at.row},
                     {grad.dv + dkv, grad.dkv_at.row},
                     saved + (b * s.heads + h) * s.queries,
                     scratch});
    }
}

}  // namespace echelon::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echelon::kernels {

HWY_EXPORT(AttentionBackward);

void attention_backward(const AttentionShape& s, const AttentionInput& in, const float* out, const float* saved,
                        const float* dout, const AttentionGrad& grad, void* scratch) {
  if (s.queries == 0 || s.keys == 0 || s.dim == 0) return;
  HWY_DYNAMIC_DISPATCH(AttentionBackward)(s, in, out, saved, dout, grad, static_cast<float*>(scratch));
}

}  // namespace echelon::kernels
#endif
