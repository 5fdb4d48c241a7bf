// Winograd's convolution against the readable twin, whether or not it would be chosen for the shape: sizes that do not
// fill the last tile, every padding, one block of channels, and both ways of cutting the work.
#include "kernels/conv/conv_winograd.h"

#include <gtest/gtest.h>

#include "tests/kernels/activation.h"
#include "tests/kernels/simd_testing.h"

namespace echelon::kernels {
namespace {

using namespace test;

ConvShape shape(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w, std::int64_t out_c, int pad) {
  return {.n = n, .c = c, .h = h, .w = w, .out_c = out_c, .kh = 3, .kw = 3, .pad_h = pad, .pad_w = pad};
}

const ConvShape winograd_shapes[] = {
    shape(1, 8, 3, 3, 8, 0),     shape(2, 8, 4, 4, 24, 1), shape(3, 16, 7, 5, 8, 1),   shape(1, 40, 6, 9, 16, 2),
    shape(5, 24, 13, 10, 40, 1), shape(2, 8, 1, 1, 8, 1),  shape(1, 64, 5, 5, 128, 1),  // more channels than tiles
    shape(70, 8, 8, 8, 8, 1),                                                           // several chunks of tiles
};

TEST(ConvWinograd, all_directions_equal_their_twins) {
  constexpr Layout layout = Layout::channel8;
  for (const ConvShape& s : winograd_shapes) {
    SCOPED_TRACE(fmt::format("{} -> {} pad {}", to_string(s.in_shape()), s.out_c, s.pad_h));
    const auto x = random_values(s.in_shape().elements(), 1), w = random_values(s.weights(), 2),
               b = random_values(s.out_c, 3), dy = random_values(s.out_shape().elements(), 4);
    std::vector<float> y(dy.size()), y_relu(dy.size()), dx(x.size()), dw(w.size()), db(b.size());
    ref_conv_forward(s, x.data(), w.data(), nullptr, false, y.data());
    ref_conv_forward(s, x.data(), w.data(), b.data(), true, y_relu.data());
    ref_conv_backward_data(s, dy.data(), w.data(), dx.data());
    ref_conv_backward_weights(s, x.data(), dy.data(), dw.data(), db.data());

    Activation in(s.in_shape(), layout, x), out(s.out_shape(), layout);
    Buffer scratch(conv_winograd_forward_scratch(s));
    make_conv_winograd_forward(s, in.data(), w.data(), nullptr, false, out.data(), scratch.data())();
    expect_close(out.plain(), y, 2e-5f);
    make_conv_winograd_forward(s, in.data(), w.data(), b.data(), true, out.data(), scratch.data())();
    expect_close(out.plain(), y_relu, 2e-5f);

    Activation d_out(s.out_shape(), layout, dy), d_in(s.in_shape(), layout);
    scratch = Buffer(conv_winograd_backward_data_scratch(s));
    make_conv_winograd_backward_data(s, d_out.data(), w.data(), d_in.data(), scratch.data())();
    expect_close(d_in.plain(), dx, 2e-5f);

    std::vector<float> actual_dw(dw.size()), actual_db(db.size());
    scratch = Buffer(conv_winograd_backward_weights_scratch(s));
    const auto run = make_conv_winograd_backward_weights(s, in.data(), d_out.data(), actual_dw.data(), actual_db.data(),
                                                         scratch.data());
    run();
    run();  // must not depend on what the first run left behind
    expect_close(actual_dw, dw, 5e-5f);
    expect_close(actual_db, db, 2e-5f);
  }
}

TEST(ConvWinograd, has_the_same_bits_with_8_and_16_lanes) {
  constexpr Layout layout = Layout::channel8;
  for (const ConvShape& s : winograd_shapes)
    expect_same_with_8_and_16_lanes([&] {
      const auto w = random_values(s.weights(), 2);
      Activation in(s.in_shape(), layout, random_values(s.in_shape().elements(), 1)), out(s.out_shape(), layout);
      Activation d_out(s.out_shape(), layout, random_values(s.out_shape().elements(), 4)), d_in(s.in_shape(), layout);
      Buffer scratch(conv_winograd_forward_scratch(s));
      make_conv_winograd_forward(s, in.data(), w.data(), nullptr, false, out.data(), scratch.data())();
      scratch = Buffer(conv_winograd_backward_data_scratch(s));
      make_conv_winograd_backward_data(s, d_out.data(), w.data(), d_in.data(), scratch.data())();
      std::vector<float> dw(w.size()), db(static_cast<std::size_t>(s.out_c));
      scratch = Buffer(conv_winograd_backward_weights_scratch(s));
      make_conv_winograd_backward_weights(s, in.data(), d_out.data(), dw.data(), db.data(), scratch.data())();
      for (const auto& each : {out.plain(), d_in.plain(), db}) dw.insert(dw.end(), each.begin(), each.end());
      return dw;
    });
}

TEST(ConvWinograd, is_chosen_for_wide_3x3_kernels_only) {
  constexpr ConvLayouts wide{Layout::channel8, Layout::channel8};
  ConvShape s = shape(32, 64, 32, 32, 64, 1);
  EXPECT_TRUE(winograd_suits(s, wide));
  EXPECT_FALSE(winograd_suits(s, {Layout::batch8, Layout::batch8}));
  EXPECT_FALSE(winograd_suits(shape(1, 512, 4, 4, 512, 1), wide));  // transforming the weights would cost more
  EXPECT_FALSE(winograd_suits(shape(64, 64, 2, 2, 64, 1), wide));   // tiles hardly used
  s.stride_h = 2;
  EXPECT_FALSE(winograd_suits(s, wide));
}

}  // namespace
}  // namespace echelon::kernels
