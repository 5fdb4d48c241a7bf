// Local response normalisation against its readable twin in every layout, and finite differences.
#include "kernels/norm/lrn.h"

#include <gtest/gtest.h>

#include "tests/kernels/activation.h"

namespace echelon::kernels {
namespace {

using namespace test;

TEST(Lrn, forward_and_backward_equal_their_twins) {
  for (const Shape& s : {Shape{1, 1, 1, 1}, Shape{3, 16, 5, 5}, Shape{9, 7, 3, 11}, Shape{2, 96, 6, 7}})
    for (const int window : {1, 4, 5, 9, 21})
      for (const float beta : {0.75f, 0.5f})
        for (const Layout layout : all_layouts) {
          if (!fits(s, layout)) continue;
          SCOPED_TRACE(fmt::format("{} {} window {} beta {}", to_string(s), name_of(layout), window, beta));
          const LrnShape shape{s[0], s[1], s[2] * s[3], window, 0.3f, beta, 2.0f};
          const auto x = random_values(s.elements(), 1), dy = random_values(s.elements(), 2);
          std::vector<float> y(x.size()), dx(x.size());
          ref_lrn_forward(shape, x.data(), y.data());
          ref_lrn_backward(shape, x.data(), dy.data(), dx.data());
          Activation in(s, layout, x), out(s, layout), d_out(s, layout, dy), d_in(s, layout);
          Buffer scratch(lrn_scratch(shape, layout));
          lrn_forward(shape, layout, in.data(), out.data(), scratch.data());
          expect_close(out.plain(), y, 1e-5f);
          lrn_backward(shape, layout, in.data(), d_out.data(), d_in.data(), scratch.data());
          expect_close(d_in.plain(), dx, 1e-5f);
        }
}

TEST(Lrn, twin_agrees_with_finite_differences) {
  const LrnShape shape{2, 7, 3, 4, 0.5f, 0.75f, 1.0f};
  auto x = random_values(42, 3);
  const auto r = random_values(42, 4);
  const auto loss = [&] {
    std::vector<float> y(x.size());
    ref_lrn_forward(shape, x.data(), y.data());
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += static_cast<double>(y[i]) * r[i];
    return sum;
  };
  std::vector<float> dx(x.size());
  ref_lrn_backward(shape, x.data(), r.data(), dx.data());
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(slope(x[i], loss), dx[i], 2e-3) << i;
}

}  // namespace
}  // namespace echelon::kernels
