#include "kernels/recurrent/recurrent.h"

#include <fmt/format.h>

#include "tests/kernels/matrix_numbers.h"
#include "tests/kernels/simd_testing.h"

namespace echelon::kernels {
namespace {

using test::expect_elements_close;
using test::numbers;

constexpr Cell cells[] = {Cell::lstm, Cell::gru, Cell::rnn_tanh, Cell::rnn_relu};

// One problem with all its inputs, and room for all outputs and gradients.
struct Problem {
  RecurrentShape s;
  bool state = true, bias = true, dy_given = true;
  std::vector<float> x, w_ih, w_hh, b_ih, b_hh, h0, c0, dy, dhn, dcn;

  Problem(RecurrentShape shape, bool with_state = true, bool with_bias = true, bool with_dy = true)
      : s(shape), state(with_state), bias(with_bias), dy_given(with_dy) {
    const std::int64_t g = gates(s.cell) * s.hidden, bh = s.batch * s.hidden;
    const float scale = 1 / std::sqrt(static_cast<float>(s.hidden));
    x = numbers(s.batch * s.seq * s.in, 1), w_ih = numbers(g * s.in, 2, scale), w_hh = numbers(g * s.hidden, 3, scale);
    b_ih = numbers(g, 4), b_hh = numbers(g, 5), h0 = numbers(bh, 6), c0 = numbers(bh, 7);
    dy = numbers(bh * s.seq, 8), dhn = numbers(bh, 9), dcn = numbers(bh, 10);
  }
  RecurrentWeights weights() const {
    return {w_ih.data(), w_hh.data(), bias ? b_ih.data() : nullptr, bias ? b_hh.data() : nullptr};
  }
  RecurrentState start() const {
    return {state ? h0.data() : nullptr, state && s.cell == Cell::lstm ? c0.data() : nullptr};
  }
  RecurrentOutputGrad dout() const {
    const bool cell_state = state && s.cell == Cell::lstm;
    return {dy_given ? dy.data() : nullptr, dy_given && !state ? nullptr : dhn.data(),
            cell_state ? dcn.data() : nullptr};
  }
  std::string name() const {
    constexpr const char* names[] = {"lstm", "gru", "rnn_tanh", "rnn_relu"};
    return fmt::format("{} batch {} seq {} in {} hidden {} state {} bias {} dy {}", names[static_cast<int>(s.cell)],
                       s.batch, s.seq, s.in, s.hidden, state, bias, dy_given);
  }
};

struct Result {
  std::vector<float> y, hn, cn, dx, dw_ih, dw_hh, db_ih, db_hh, dh0, dc0;
  explicit Result(const Problem& p)
      : y(p.dy.size()),
        hn(p.h0.size()),
        cn(hn.size()),
        dx(p.x.size()),
        dw_ih(p.w_ih.size()),
        dw_hh(p.w_hh.size()),
        db_ih(p.b_ih.size()),
        db_hh(db_ih.size()),
        dh0(hn.size()),
        dc0(hn.size()) {}
  RecurrentOutput out(const Problem& p) { return {y.data(), hn.data(), p.s.cell == Cell::lstm ? cn.data() : nullptr}; }
  RecurrentGrad grad(const Problem& p) {
    return {dx.data(),
            dw_ih.data(),
            dw_hh.data(),
            db_ih.data(),
            db_hh.data(),
            dh0.data(),
            p.s.cell == Cell::lstm ? dc0.data() : nullptr};
  }
};

Result run_fast(const Problem& p) {
  Result r(p);
  Buffer scratch(recurrent_scratch(p.s)), saved(recurrent_saved(p.s));
  recurrent_forward(p.s, p.weights(), p.x.data(), p.start(), r.out(p), saved.data(), scratch.data());
  recurrent_backward(p.s, p.weights(), p.x.data(), p.start(), r.y.data(), saved.data(), p.dout(), r.grad(p),
                     scratch.data());
  return r;
}

Result run_ref(const Problem& p) {
  Result r(p);
  ref_recurrent_forward(p.s, p.weights(), p.x.data(), p.start(), r.out(p));
  ref_recurrent_backward(p.s, p.weights(), p.x.data(), p.start(), p.dout(), r.grad(p));
  return r;
}

void check(const Problem& p) {
  const Result fast = run_fast(p), ref = run_ref(p);
  const auto close = [&](const std::vector<float>& a, const std::vector<float>& b, const char* what) {
    expect_elements_close(a, b, 3e-5f, p.name() + ": " + what);
  };
  close(fast.y, ref.y, "y"), close(fast.hn, ref.hn, "hn"), close(fast.cn, ref.cn, "cn");
  close(fast.dx, ref.dx, "dx"), close(fast.dw_ih, ref.dw_ih, "dw_ih"), close(fast.dw_hh, ref.dw_hh, "dw_hh");
  close(fast.db_ih, ref.db_ih, "db_ih"), close(fast.db_hh, ref.db_hh, "db_hh");
  close(fast.dh0, ref.dh0, "dh0"), close(fast.dc0, ref.dc0, "dc0");
}

TEST(Recurrent, EqualsTheReferenceAtOddSizes) {
  for (const Cell cell : cells)
    for (const std::int64_t batch : {1, 3, 17})
      for (const std::int64_t seq : {1, 2, 7})
        for (const std::int64_t hidden : {1, 5, 16, 33}) check(Problem({cell, batch, seq, 1 + hidden % 7, hidden}));
}

TEST(Recurrent, EveryInputMayBeMissing) {
  for (const Cell cell : cells)
    for (int missing = 0; missing < 8; ++missing)
      check(Problem({cell, 5, 4, 6, 19}, !(missing & 1), !(missing & 2), !(missing & 4)));
}

TEST(Recurrent, EqualsTheReferenceAtRealSizes) {
  for (const Cell cell : cells) {
    check(Problem({cell, 16, 9, 64, 128}));
    check(Problem({cell, 3, 30, 40, 72}, false));
  }
}

TEST(Recurrent, HasTheSameBitsWith8And16Lanes) {
  for (const Cell cell : cells)
    for (const std::int64_t hidden : {24, 41})
      expect_same_with_8_and_16_lanes([&] {
        const Result r = run_fast(Problem({cell, 13, 5, 10, hidden}));
        std::vector<float> all;
        for (const auto* each : {&r.y, &r.hn, &r.cn, &r.dx, &r.dw_ih, &r.dw_hh, &r.db_ih, &r.db_hh, &r.dh0, &r.dc0})
          all.insert(all.end(), each->begin(), each->end());
        return all;
      });
}

TEST(Recurrent, GradientsNotWantedAreNotComputed) {
  for (const Cell cell : cells) {
    const Problem p({cell, 4, 5, 6, 7});
    Buffer scratch(recurrent_scratch(p.s)), saved(recurrent_saved(p.s));
    Result r(p), all = run_fast(p);
    recurrent_forward(p.s, p.weights(), p.x.data(), p.start(), {r.y.data()}, saved.data(), scratch.data());
    recurrent_backward(p.s, p.weights(), p.x.data(), p.start(), r.y.data(), saved.data(), p.dout(),
                       {.dw_hh = r.dw_hh.data()}, scratch.data());
    EXPECT_EQ(r.dw_hh, all.dw_hh) << p.name();
  }
}

// Sum of outputs weighted by their gradients: the scalar whose derivative backward computes.
double weighted(const Problem& p) {
  Result r(p);
  ref_recurrent_forward(p.s, p.weights(), p.x.data(), p.start(), r.out(p));
  double sum = 0;
  const RecurrentOutputGrad d = p.dout();
  for (std::size_t i = 0; d.dy && i < r.y.size(); ++i) sum += static_cast<double>(r.y[i]) * d.dy[i];
  for (std::size_t i = 0; d.dhn && i < r.hn.size(); ++i) sum += static_cast<double>(r.hn[i]) * d.dhn[i];
  for (std::size_t i = 0; d.dcn && i < r.cn.size(); ++i) sum += static_cast<double>(r.cn[i]) * d.dcn[i];
  return sum;
}

TEST(Recurrent, GradientsAreFiniteDifferences) {
  for (const Cell cell : {Cell::lstm, Cell::gru, Cell::rnn_tanh}) {
    Problem p({cell, 2, 3, 4, 5});
    const Result r = run_fast(p);
    const auto check_one = [&](std::vector<float>& value, const std::vector<float>& gradient, const char* what) {
      for (std::size_t i = 0; i < value.size(); i += 1 + value.size() / 7) {
        const float before = value[i], step = 1e-2f;
        value[i] = before + step;
        const double up = weighted(p);
        value[i] = before - step;
        const double down = weighted(p);
        value[i] = before;
        EXPECT_NEAR((up - down) / (2 * step), gradient[i], 2e-3) << p.name() << ": " << what << " " << i;
      }
    };
    check_one(p.x, r.dx, "x"), check_one(p.w_ih, r.dw_ih, "w_ih"), check_one(p.w_hh, r.dw_hh, "w_hh");
    check_one(p.b_ih, r.db_ih, "b_ih"), check_one(p.b_hh, r.db_hh, "b_hh"), check_one(p.h0, r.dh0, "h0");
    if (cell == Cell::lstm) check_one(p.c0, r.dc0, "c0");
  }
}

// Truncated back-propagation relies on it: two pieces, chained by their states, give the outputs of the whole.
TEST(Recurrent, PiecesChainedByTheirStatesEqualTheWhole) {
  for (const Cell cell : cells) {
    const Problem whole({cell, 1, 8, 6, 24});
    RecurrentShape half = whole.s;
    half.seq = 4;
    Result r(whole);
    const bool lstm = cell == Cell::lstm;
    Buffer scratch(recurrent_scratch(whole.s)), saved(recurrent_saved(whole.s));
    recurrent_forward(half, whole.weights(), whole.x.data(), whole.start(), r.out(whole), saved.data(), scratch.data());
    const std::vector<float> h = r.hn, c = r.cn;
    RecurrentOutput second = r.out(whole);
    second.y += 4 * 24;
    recurrent_forward(half, whole.weights(), whole.x.data() + 4 * 6, {h.data(), lstm ? c.data() : nullptr}, second,
                      saved.data(), scratch.data());
    expect_elements_close(r.y, run_ref(whole).y, 1e-5f, whole.name());
  }
}

}  // namespace
}  // namespace echelon::kernels
