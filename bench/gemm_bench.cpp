// Matrix products of the reference networks' linear layers, all three directions, beside OpenBLAS and beside the limit
// of each shape: the longer of its multiply-adds at the core's peak and of reading its operands once, as quickly as
// this core reads that many bytes again and again.
//     bench_gemm [name part] [turns]
#include <cblas.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "bench/rival.h"
#include "kernels/gemm/gemm.h"
#include "tensor/buffer.h"

namespace echelon::kernels {
namespace {

struct Layer {
  const char* name;
  std::int64_t rows, in, out;
};

const Layer layers[] = {
    {"gpt.qkv", 2048, 256, 768},   {"gpt.out", 2048, 256, 256},     {"gpt.up", 2048, 256, 1024},
    {"gpt.down", 2048, 1024, 256}, {"gpt/2.qkv", 1024, 256, 768},   {"gpt/2.out", 1024, 256, 256},
    {"gpt/2.up", 1024, 256, 1024}, {"gpt/2.down", 1024, 1024, 256}, {"mlp.1", 128, 784, 1024},
    {"mlp.2", 128, 1024, 1024},    {"mlp.3", 128, 1024, 10},        {"mlp/2.1", 64, 784, 1024},
    {"mlp/2.2", 64, 1024, 1024},   {"mlp/2.3", 64, 1024, 10},       {"lstm.ih", 2048, 128, 1024},
    {"lstm.hh", 2048, 256, 1024},  {"lstm.step", 32, 256, 1024},    {"lstm/2.step", 16, 256, 1024},
    {"lenet5.1", 64, 400, 120},    {"lenet5.2", 64, 120, 84},       {"lenet5.3", 64, 84, 10},
    {"lenet5/2.1", 32, 400, 120},  {"odd", 333, 517, 259},          {"vector", 1, 1024, 1024},
};

struct Total {
  double flops = 0, ours = 0, theirs = 0, limit = 0;
};

__attribute__((target("avx2"), noinline)) void read_all(const float* from, std::size_t floats) {
  __m256 seen[8] = {};
  for (std::size_t i = 0; i < floats; i += 64)
#pragma GCC unroll 8
    for (std::size_t k = 0; k < 8; ++k) seen[k] = _mm256_or_ps(seen[k], _mm256_load_ps(from + i + 8 * k));
  for (auto& v : seen) __asm__ volatile("" ::"x"(v));
}

// Seconds in which this core reads so many bytes that it has read just before.
double reading_seconds(std::size_t bytes) {
  Buffer memory((bytes + 255) / 256 * 256);
  return bench::best_seconds([&] { read_all(memory.as<float>().data(), memory.bytes() / sizeof(float)); }, 0.01);
}

void measure(const std::string& name, const Gemm& g, double peak, int turns, Total& total) {
  const auto floats = [](std::int64_t n) { return Buffer(static_cast<std::size_t>(n) * sizeof(float)); };
  Buffer a = floats(g.m * g.k), b = floats(g.k * g.n), c = floats(g.m * g.n), scratch(gemm_scratch(g));
  for (Buffer* each : {&a, &b})
    for (unsigned state = 1; float& v : each->as<float>())
      v = static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) * 0x1p-23f - 1;
  const float *pa = a.as<float>().data(), *pb = b.as<float>().data();
  float* pc = c.as<float>().data();
  const std::int64_t lda = g.trans_a ? g.m : g.k, ldb = g.trans_b ? g.k : g.n;
  const auto r = bench::measure_in_turns(
      [&] { gemm(g, pa, lda, pb, ldb, pc, g.n, scratch.data()); },
      [&] {
        cblas_sgemm(CblasRowMajor, g.trans_a ? CblasTrans : CblasNoTrans, g.trans_b ? CblasTrans : CblasNoTrans,
                    static_cast<blasint>(g.m), static_cast<blasint>(g.n), static_cast<blasint>(g.k), 1, pa,
                    static_cast<blasint>(lda), pb, static_cast<blasint>(ldb), 0, pc, static_cast<blasint>(g.n));
      },
      turns);
  const double flops = 2.0 * static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
  const double arithmetic = flops / peak * 1e-9;
  const double reading = reading_seconds(static_cast<std::size_t>(g.m * g.k + g.k * g.n + g.m * g.n) * sizeof(float));
  const double limit = std::max(arithmetic, reading);
  fmt::print(
      "{:<16} {}{} {:>5} x {:>4} x {:>4}  ours {:5.1f} %  OpenBLAS {:5.1f} %  ratio {:.3f}  of its limit {:5.1f} % "
      "({})\n",
      name, g.trans_a ? 'T' : 'N', g.trans_b ? 'T' : 'N', g.m, g.n, g.k, flops / r.ours / peak * 1e-7,
      flops / r.theirs / peak * 1e-7, r.ratio, 100 * limit / r.ours, arithmetic >= reading ? "FMA" : "memory");
  std::fflush(stdout);
  total.flops += flops, total.ours += r.ours, total.theirs += r.theirs, total.limit += limit;
}

}  // namespace
}  // namespace echelon::kernels

int main(int argc, char** argv) {
  using namespace echelon::kernels;
  init_math_libraries();
  const std::string part = argc > 1 ? argv[1] : "";
  const int turns = argc > 2 ? std::atoi(argv[2]) : 15;
  const double peak = echelon::bench::peak_gflops();
  fmt::print("FMA peak of this core {:.1f} GFLOP/s; shares are of that\n", peak);
  Total total;
  for (const auto& l : layers) {
    if (std::string(l.name).find(part) == std::string::npos) continue;
    const std::string name = l.name;
    measure(name, {.trans_b = true, .m = l.rows, .n = l.out, .k = l.in}, peak, turns, total);
    measure(name + " dx", {.m = l.rows, .n = l.in, .k = l.out}, peak, turns, total);
    measure(name + " dw", {.trans_a = true, .m = l.out, .n = l.in, .k = l.rows}, peak, turns, total);
  }
  fmt::print("all together: ours {:.1f} %, OpenBLAS {:.1f} %; ours {:.1f} % of the limits\n",
             total.flops / total.ours / peak * 1e-7, total.flops / total.theirs / peak * 1e-7,
             100 * total.limit / total.ours);
}
