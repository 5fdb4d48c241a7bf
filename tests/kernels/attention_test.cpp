#include "kernels/attention/attention.h"

#include <fmt/format.h>

#include "tests/kernels/matrix_numbers.h"
#include "tests/kernels/simd_testing.h"

namespace echelon::kernels {
namespace {

using test::expect_elements_close;
using test::numbers;

std::string name(const AttentionShape& s) {
  return fmt::format("batch {} heads {} dim {} queries {} keys {} causal {} scale {}", s.batch, s.heads, s.dim,
                     s.queries, s.keys, s.causal, s.scale);
}

// Self-attention on packed qkv, forward and backward, against the reference.
void check_packed(const AttentionShape& s, float size = 1) {
  const auto qkv = numbers(s.batch * s.queries * 3 * s.heads * s.dim, 1, size);
  const auto dout = numbers(s.batch * s.queries * s.heads * s.dim, 2);
  const AttentionInput in = split_qkv(s, qkv.data());
  std::vector<float> out(dout.size()), ref_out(dout.size()), dqkv(qkv.size()), ref_dqkv(qkv.size());
  Buffer scratch(attention_scratch(s)), saved(attention_saved(s));
  attention_forward(s, in, out.data(), saved.as<float>().data(), scratch.data());
  ref_attention_forward(s, in, ref_out.data());
  expect_elements_close(out, ref_out, 2e-5f, name(s) + " out");
  attention_backward(s, in, out.data(), saved.as<float>().data(), dout.data(), split_dqkv(s, dqkv.data()),
                     scratch.data());
  ref_attention_backward(s, in, dout.data(), split_dqkv(s, ref_dqkv.data()));
  expect_elements_close(dqkv, ref_dqkv, 5e-5f * size, name(s) + " dqkv");
}

TEST(Attention, SelfAttentionEqualsTheReferenceAtOddSizes) {
  for (const bool causal : {false, true})
    for (const std::int64_t seq : {1, 2, 13, 16, 33, 67})
      for (const std::int64_t dim : {1, 7, 16, 33})
        check_packed({.batch = 2, .heads = 3, .dim = dim, .queries = seq, .keys = seq, .causal = causal});
}

TEST(Attention, SelfAttentionEqualsTheReferenceAtRealSizes) {
  for (const bool causal : {false, true}) {
    check_packed({.batch = 2, .heads = 4, .dim = 64, .queries = 128, .keys = 128, .causal = causal});
    check_packed({.batch = 1, .heads = 1, .dim = 32, .queries = 515, .keys = 515, .causal = causal});
    check_packed({.batch = 1, .heads = 2, .dim = 48, .queries = 100, .keys = 100, .causal = causal, .scale = 0.3f});
  }
}

TEST(Attention, HasTheSameBitsWith8And16Lanes) {
  for (const bool causal : {false, true})
    for (const auto& [seq, dim] : {std::pair<std::int64_t, std::int64_t>{1, 3}, {9, 8}, {37, 24}, {70, 43}, {130, 64}})
      expect_same_with_8_and_16_lanes([&, seq = seq, dim = dim] {
        const AttentionShape s{.batch = 1, .heads = 2, .dim = dim, .queries = seq, .keys = seq, .causal = causal};
        const auto qkv = numbers(seq * 3 * 2 * dim, 1, 2), dout = numbers(seq * 2 * dim, 2);
        std::vector<float> out(dout.size()), dqkv(qkv.size());
        Buffer scratch(attention_scratch(s)), saved(attention_saved(s));
        attention_forward(s, split_qkv(s, qkv.data()), out.data(), saved.as<float>().data(), scratch.data());
        attention_backward(s, split_qkv(s, qkv.data()), out.data(), saved.as<float>().data(), dout.data(),
                           split_dqkv(s, dqkv.data()), scratch.data());
        out.insert(out.end(), dqkv.begin(), dqkv.end());
        return out;
      });
}

// Scores of several hundred: exp would overflow were the row's maximum not taken off.
TEST(Attention, LargeScoresDoNotOverflow) {
  check_packed({.batch = 1, .heads = 1, .dim = 32, .queries = 40, .keys = 40, .causal = true, .scale = 4}, 3);
}

TEST(Attention, CrossAttentionWithItsOwnStrides) {
  for (const bool causal : {false, true})
    for (const auto& [queries, keys] : {std::pair{1, 37}, {5, 5}, {31, 66}, {64, 200}}) {
      const AttentionShape s{
          .batch = 2, .heads = 2, .dim = 24, .queries = queries, .keys = keys, .causal = causal, .scale = 0};
      const std::int64_t wide = s.heads * s.dim, q_row = wide + 3, kv_row = wide + 5;
      const auto q = numbers(s.batch * queries * q_row, 1), k = numbers(s.batch * keys * kv_row, 2);
      const auto v = numbers(k.size(), 3), dout = numbers(s.batch * queries * wide, 4);
      const AttentionInput in{q.data(), k.data(), v.data(), {queries * q_row, q_row}, {keys * kv_row, kv_row}};
      std::vector<float> out(dout.size()), ref_out(dout.size());
      std::vector<float> dq(q.size()), dk(k.size()), dv(k.size()), rq(q.size()), rk(k.size()), rv(k.size());
      Buffer scratch(attention_scratch(s)), saved(attention_saved(s));
      attention_forward(s, in, out.data(), saved.as<float>().data(), scratch.data());
      ref_attention_forward(s, in, ref_out.data());
      expect_elements_close(out, ref_out, 2e-5f, name(s) + " out");
      attention_backward(s, in, out.data(), saved.as<float>().data(), dout.data(),
                         {dq.data(), dk.data(), dv.data(), in.q_at, in.kv_at}, scratch.data());
      ref_attention_backward(s, in, dout.data(), {rq.data(), rk.data(), rv.data(), in.q_at, in.kv_at});
      expect_elements_close(dq, rq, 5e-5f, name(s) + " dq");
      expect_elements_close(dk, rk, 5e-5f, name(s) + " dk");
      expect_elements_close(dv, rv, 5e-5f, name(s) + " dv");
    }
}

TEST(Attention, GradientsAreFiniteDifferences) {
  const AttentionShape s{.batch = 1, .heads = 2, .dim = 5, .queries = 6, .keys = 6, .causal = true, .scale = 0};
  auto qkv = numbers(s.queries * 3 * s.heads * s.dim, 1);
  const auto dout = numbers(s.queries * s.heads * s.dim, 2);
  std::vector<float> out(dout.size()), dqkv(qkv.size());
  Buffer scratch(attention_scratch(s)), saved(attention_saved(s));
  attention_forward(s, split_qkv(s, qkv.data()), out.data(), saved.as<float>().data(), scratch.data());
  attention_backward(s, split_qkv(s, qkv.data()), out.data(), saved.as<float>().data(), dout.data(),
                     split_dqkv(s, dqkv.data()), scratch.data());
  const auto weighted = [&] {
    ref_attention_forward(s, split_qkv(s, qkv.data()), out.data());
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) sum += static_cast<double>(out[i]) * dout[i];
    return sum;
  };
  for (std::size_t i = 0; i < qkv.size(); i += 3) {
    const float before = qkv[i], step = 1e-2f;
    qkv[i] = before + step;
    const double up = weighted();
    qkv[i] = before - step;
    const double down = weighted();
    qkv[i] = before;
    EXPECT_NEAR((up - down) / (2 * step), dqkv[i], 1e-3) << "element " << i;
  }
}

// A causal query must not see what comes after it, whatever is there.
TEST(Attention, CausalOutputsDoNotDependOnLaterPositions) {
  const AttentionShape s{.batch = 1, .heads = 2, .dim = 16, .queries = 50, .keys = 50, .causal = true, .scale = 0};
  auto qkv = numbers(s.queries * 3 * s.heads * s.dim, 1);
  std::vector<float> out(s.queries * s.heads * s.dim), changed(out.size());
  Buffer scratch(attention_scratch(s)), saved(attention_saved(s));
  attention_forward(s, split_qkv(s, qkv.data()), out.data(), saved.as<float>().data(), scratch.data());
  std::fill(qkv.begin() + 30 * 3 * 32, qkv.end(), 1e30f);
  attention_forward(s, split_qkv(s, qkv.data()), changed.data(), saved.as<float>().data(), scratch.data());
  for (std::size_t i = 0; i < 30 * 32; ++i) ASSERT_EQ(out[i], changed[i]) << "element " << i;
}

}  // namespace
}  // namespace echelon::kernels
