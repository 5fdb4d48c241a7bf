// Forward and backward of attention on packed qkv, as a share of the core's peak. Causal attention is counted with
// half the products of the full one.
//     bench_attention
#include <fmt/format.h>

#include <cstdio>

#include "bench/peak.h"
#include "kernels/attention/attention.h"
#include "tensor/buffer.h"

namespace echelon::kernels {
namespace {

Buffer numbers(std::int64_t n) {
  Buffer b(static_cast<std::size_t>(n) * sizeof(float));
  for (unsigned state = 1; float& v : b.as<float>())
    v = static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) * 0x1p-23f - 1;
  return b;
}

void measure(const AttentionShape& s, double peak) {
  const std::int64_t wide = s.heads * s.dim, rows = s.batch * s.queries;
  Buffer qkv = numbers(rows * 3 * wide), dqkv = numbers(rows * 3 * wide), out = numbers(rows * wide);
  Buffer dout = numbers(rows * wide), saved(attention_saved(s)), scratch(attention_scratch(s));
  const AttentionInput in = split_qkv(s, qkv.as<float>().data());
  const AttentionGrad grad = split_dqkv(s, dqkv.as<float>().data());
  float* log_sums = saved.as<float>().data();
  const double forward =
      bench::best_seconds([&] { attention_forward(s, in, out.as<float>().data(), log_sums, scratch.data()); }, 0.5);
  const double backward = bench::best_seconds(
      [&] {
        attention_backward(s, in, out.as<float>().data(), log_sums, dout.as<float>().data(), grad, scratch.data());
      },
      0.5);
  const double product =
      2e-9 * static_cast<double>(s.batch * s.heads * s.queries * s.keys * s.dim) / (s.causal ? 2 : 1);
  fmt::print("batch {:>2} seq {:>4} heads {} dim {} {}: forward {:6.2f} ms {:5.1f} %, backward {:6.2f} ms {:5.1f} %\n",
             s.batch, s.queries, s.heads, s.dim, s.causal ? "causal" : "full  ", forward * 1e3,
             2 * product / forward / peak * 100, backward * 1e3, 5 * product / backward / peak * 100);
  std::fflush(stdout);
}

}  // namespace
}  // namespace echelon::kernels

int main() {
  const double peak = echelon::bench::peak_gflops();
  fmt::print("FMA peak of this core {:.1f} GFLOP/s; shares are of that\n", peak);
  for (const bool causal : {true, false})
    for (const auto& [batch, seq] : {std::pair{16, 128}, {8, 128}, {12, 64}, {4, 512}, {2, 1024}})
      echelon::kernels::measure({.batch = batch, .heads = 4, .dim = 64, .queries = seq, .keys = seq, .causal = causal},
                                peak);
}
