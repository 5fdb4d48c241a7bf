// A training step (forward and backward, no gradient of the input) of recurrent layers, as a share of the core's peak:
//     bench_recurrent
#include <fmt/format.h>

#include <cstdio>

#include "bench/peak.h"
#include "kernels/recurrent/recurrent.h"
#include "tensor/buffer.h"

namespace echelon::kernels {
namespace {

Buffer numbers(std::int64_t n, float scale) {
  Buffer b(static_cast<std::size_t>(n) * sizeof(float));
  for (unsigned state = 1; float& v : b.as<float>())
    v = scale * (static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) * 0x1p-23f - 1);
  return b;
}

float* at(Buffer& b) { return b.as<float>().data(); }

void measure(const char* name, const RecurrentShape& s, double peak) {
  const std::int64_t g = gates(s.cell) * s.hidden, state = s.batch * s.hidden;
  Buffer x = numbers(s.batch * s.seq * s.in, 1), w_ih = numbers(g * s.in, 0.06f), w_hh = numbers(g * s.hidden, 0.06f);
  Buffer b_ih = numbers(g, 0.06f), b_hh = numbers(g, 0.06f), dhn = numbers(state, 1), y = numbers(state * s.seq, 0);
  Buffer hn = numbers(state, 0), dw_ih = numbers(g * s.in, 0), dw_hh = numbers(g * s.hidden, 0);
  Buffer db_ih = numbers(g, 0), db_hh = numbers(g, 0), saved(recurrent_saved(s)), scratch(recurrent_scratch(s));
  const RecurrentWeights w{at(w_ih), at(w_hh), at(b_ih), at(b_hh)};
  const auto forward = [&] { recurrent_forward(s, w, at(x), {}, {at(y), at(hn)}, saved.data(), scratch.data()); };
  const auto backward = [&] {
    recurrent_backward(s, w, at(x), {}, at(y), saved.data(), {.dhn = at(dhn)},
                       {.dw_ih = at(dw_ih), .dw_hh = at(dw_hh), .db_ih = at(db_ih), .db_hh = at(db_hh)},
                       scratch.data());
  };
  const double one = bench::best_seconds(forward, 1), both = bench::best_seconds([&] { forward(), backward(); }, 2);
  const double mul = 2e-9 * static_cast<double>(s.batch * s.seq * g);
  const double f = mul * static_cast<double>(s.in + s.hidden), b = mul * static_cast<double>(s.in + 2 * s.hidden);
  fmt::print(
      "{:<5} batch {:>2} seq {} {} -> {}: forward {:6.2f} ms {:5.1f} %, backward {:6.2f} ms {:5.1f} %, step {:5.1f} "
      "%\n",
      name, s.batch, s.seq, s.in, s.hidden, one * 1e3, f / one / peak * 100, (both - one) * 1e3,
      b / (both - one) / peak * 100, (f + b) / both / peak * 100);
  std::fflush(stdout);
}

}  // namespace
}  // namespace echelon::kernels

int main() {
  using namespace echelon::kernels;
  const double peak = echelon::bench::peak_gflops();
  fmt::print("FMA peak of this core {:.1f} GFLOP/s; shares are of that\n", peak);
  measure("lstm", {Cell::lstm, 32, 64, 128, 256}, peak);
  measure("lstm", {Cell::lstm, 16, 64, 128, 256}, peak);
  measure("gru", {Cell::gru, 32, 64, 128, 256}, peak);
  measure("rnn", {Cell::rnn_tanh, 32, 64, 128, 256}, peak);
  measure("lstm", {Cell::lstm, 8, 32, 64, 100}, peak);
}
