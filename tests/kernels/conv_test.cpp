// Convolution against its readable twin, over every layout that supports a shape, and the twin against finite
// differences.
#include "kernels/conv/conv.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "kernels/conv/conv_batch8.h"
#include "tests/kernels/activation.h"
#include "tests/kernels/simd_testing.h"

namespace echelon::kernels {
namespace {

using namespace test;

const ConvShape conv_shapes[] = {
    {.n = 1, .c = 1, .h = 1, .w = 1, .out_c = 1},
    {.n = 8, .c = 1, .h = 28, .w = 28, .out_c = 6, .kh = 5, .kw = 5, .pad_h = 2, .pad_w = 2},
    {.n = 5, .c = 6, .h = 14, .w = 14, .out_c = 16, .kh = 5, .kw = 5},
    {.n = 11, .c = 3, .h = 13, .w = 11, .out_c = 16, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1},
    {.n = 3,
     .c = 3,
     .h = 32,
     .w = 32,
     .out_c = 64,
     .kh = 7,
     .kw = 7,
     .stride_h = 2,
     .stride_w = 2,
     .pad_h = 3,
     .pad_w = 3},
    {.n = 9,
     .c = 5,
     .h = 7,
     .w = 9,
     .out_c = 7,
     .kh = 3,
     .kw = 2,
     .stride_h = 2,
     .stride_w = 3,
     .pad_h = 2,
     .pad_w = 1},
    {.n = 2,
     .c = 8,
     .h = 9,
     .w = 9,
     .out_c = 16,
     .kh = 3,
     .kw = 3,
     .pad_h = 2,
     .pad_w = 2,
     .dilation_h = 2,
     .dilation_w = 2},
    {.n = 4, .c = 16, .h = 8, .w = 8, .out_c = 16, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1, .groups = 2},
    {.n = 4, .c = 16, .h = 8, .w = 8, .out_c = 16, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1, .groups = 16},
    {.n = 3, .c = 6, .h = 8, .w = 5, .out_c = 4, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1, .groups = 2},
    {.n = 3,
     .c = 6,
     .h = 6,
     .w = 6,
     .out_c = 12,
     .kh = 3,
     .kw = 3,
     .stride_h = 2,
     .stride_w = 2,
     .pad_h = 1,
     .pad_w = 1,
     .groups = 6},
    {.n = 2, .c = 16, .h = 10, .w = 10, .out_c = 24, .kh = 1, .kw = 1, .stride_h = 2, .stride_w = 2},
    {.n = 2, .c = 64, .h = 8, .w = 8, .out_c = 64, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1},
    {.n = 2,
     .c = 32,
     .h = 16,
     .w = 16,
     .out_c = 64,
     .kh = 3,
     .kw = 3,
     .stride_h = 2,
     .stride_w = 2,
     .pad_h = 1,
     .pad_w = 1},
    {.n = 2, .c = 12, .h = 6, .w = 6, .out_c = 12, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1},
    {.n = 7, .c = 2, .h = 5, .w = 5, .out_c = 3, .kh = 1, .kw = 1, .stride_h = 4, .stride_w = 4},  // rows no tap meets
    {.n = 1, .c = 2, .h = 3, .w = 3, .out_c = 2, .kh = 1, .kw = 1, .pad_h = 2, .pad_w = 2},  // padding past the kernel
    {.n = 1,
     .c = 8,
     .h = 2,
     .w = 2,
     .out_c = 8,
     .kh = 3,
     .kw = 3,
     .stride_h = 5,
     .stride_w = 5,
     .pad_h = 1,
     .pad_w = 1},
    // The first layer of a GAN's discriminator: a weight gradient that oneDNN has no fast kernel for.
    {.n = 3,
     .c = 1,
     .h = 12,
     .w = 12,
     .out_c = 32,
     .kh = 4,
     .kw = 4,
     .stride_h = 2,
     .stride_w = 2,
     .pad_h = 1,
     .pad_w = 1},
    // The kernel is larger than the picture: oneDNN has only its reference for the weights' gradient in blocks of 8.
    {.n = 2, .c = 16, .h = 2, .w = 2, .out_c = 16, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1},
};

std::string describe(const ConvShape& s, ConvLayouts l) {
  return fmt::format("{} -> {} channels, {}x{} kernel, stride {}, pad {}, dilation {}, groups {}, {} -> {}",
                     to_string(s.in_shape()), s.out_c, s.kh, s.kw, s.stride_h, s.pad_h, s.dilation_h, s.groups,
                     name_of(l.in), name_of(l.out));
}

// Calls prepare(shape), which computes what is expected and returns a check, and the check for all supported layouts.
template <typename Prepare>
void for_each_conv(Prepare prepare) {
  for (const ConvShape& s : conv_shapes) {
    const auto check = prepare(s);
    for (const Layout in : all_layouts)
      for (const Layout out : all_layouts) {
        if (!supports(s, {in, out})) continue;
        SCOPED_TRACE(describe(s, {in, out}));
        check(ConvLayouts{in, out});
      }
  }
}

TEST(Conv, forward_equals_its_twin) {
  for_each_conv([](const ConvShape& s) {
    const auto x = random_values(s.in_shape().elements(), 1), w = random_values(s.weights(), 2),
               b = random_values(s.out_c, 3);
    std::vector<float> without(size(s.out_shape())), with_bias_and_relu = without;
    ref_conv_forward(s, x.data(), w.data(), nullptr, false, without.data());
    ref_conv_forward(s, x.data(), w.data(), b.data(), true, with_bias_and_relu.data());
    return [=](ConvLayouts l) {
      for (const bool both : {false, true}) {
        Activation in(s.in_shape(), l.in, x), out(s.out_shape(), l.out);
        Buffer scratch(conv_forward_scratch(s, l));
        const auto run =
            make_conv_forward(s, l, in.data(), w.data(), both ? b.data() : nullptr, both, out.data(), scratch.data());
        run();
        run();  // a second run must not depend on what the first left behind
        expect_close(out.plain(), both ? with_bias_and_relu : without, 2e-5f);
      }
    };
  });
}

TEST(Conv, backward_data_equals_its_twin) {
  for_each_conv([](const ConvShape& s) {
    const auto dy = random_values(s.out_shape().elements(), 4), w = random_values(s.weights(), 5);
    std::vector<float> expected(size(s.in_shape()));
    ref_conv_backward_data(s, dy.data(), w.data(), expected.data());
    return [=](ConvLayouts l) {
      Activation out(s.out_shape(), l.out, dy), in(s.in_shape(), l.in);
      Buffer scratch(conv_backward_data_scratch(s, l));
      const auto run = make_conv_backward_data(s, l, out.data(), w.data(), in.data(), scratch.data());
      run();
      run();
      expect_close(in.plain(), expected, 2e-5f);
    };
  });
}

TEST(Conv, backward_weights_equals_its_twin) {
  for_each_conv([](const ConvShape& s) {
    const auto x = random_values(s.in_shape().elements(), 6), dy = random_values(s.out_shape().elements(), 7);
    std::vector<float> expected_dw(size(s.weight_shape())), expected_db(static_cast<std::size_t>(s.out_c));
    ref_conv_backward_weights(s, x.data(), dy.data(), expected_dw.data(), expected_db.data());
    return [=](ConvLayouts l) {
      for (const bool with_bias : {false, true}) {
        std::vector<float> dw(expected_dw.size()), db(expected_db.size());
        Activation in(s.in_shape(), l.in, x), out(s.out_shape(), l.out, dy);
        Buffer scratch(conv_backward_weights_scratch(s, l));
        const auto run = make_conv_backward_weights(s, l, in.data(), out.data(), dw.data(),
                                                    with_bias ? db.data() : nullptr, scratch.data());
        run();
        run();
        expect_close(dw, expected_dw, 5e-5f);
        if (with_bias) expect_close(db, expected_db, 5e-5f);
      }
    };
  });
}

TEST(Conv, twins_agree_with_finite_differences) {
  // The loss sum(y * r) is linear in x and in w, so a central difference is exact up to rounding.
  const ConvShape s{.n = 2,
                    .c = 4,
                    .h = 5,
                    .w = 6,
                    .out_c = 6,
                    .kh = 3,
                    .kw = 2,
                    .stride_h = 2,
                    .stride_w = 1,
                    .pad_h = 1,
                    .pad_w = 1,
                    .dilation_h = 1,
                    .dilation_w = 2,
                    .groups = 2};
  auto x = random_values(s.in_shape().elements(), 8), w = random_values(s.weights(), 9), b = random_values(s.out_c, 10);
  const auto r = random_values(s.out_shape().elements(), 11);
  const auto loss = [&] {
    std::vector<float> y(r.size());
    ref_conv_forward(s, x.data(), w.data(), b.data(), false, y.data());
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += static_cast<double>(y[i]) * r[i];
    return sum;
  };
  std::vector<float> dx(x.size()), dw(w.size()), db(b.size());
  ref_conv_backward_data(s, r.data(), w.data(), dx.data());
  ref_conv_backward_weights(s, x.data(), r.data(), dw.data(), db.data());
  const auto check = [&](std::vector<float>& values, const std::vector<float>& gradient) {
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(slope(values[i], loss), gradient[i], 1e-3) << i;
  };
  check(x, dx);
  check(w, dw);
  check(b, db);
}

TEST(Conv, batch8_has_the_same_bits_with_8_and_16_lanes) {
  constexpr Layout layout = Layout::batch8;
  for (const ConvShape& s : conv_shapes) {
    SCOPED_TRACE(fmt::format("{} -> {}", to_string(s.in_shape()), to_string(s.out_shape())));
    expect_same_with_8_and_16_lanes([&] {
      const auto w = random_values(s.weights(), 2), b = random_values(s.out_c, 3);
      Activation in(s.in_shape(), layout, random_values(s.in_shape().elements(), 1)), out(s.out_shape(), layout);
      Activation d_out(s.out_shape(), layout, random_values(s.out_shape().elements(), 4)), d_in(s.in_shape(), layout);
      Buffer scratch(conv_batch8_forward_scratch(s));
      make_conv_batch8_forward(s, in.data(), w.data(), b.data(), true, out.data(), scratch.data())();
      scratch = Buffer(conv_batch8_backward_data_scratch(s));
      make_conv_batch8_backward_data(s, d_out.data(), w.data(), d_in.data(), scratch.data())();
      std::vector<float> dw(w.size()), db(b.size());
      scratch = Buffer(conv_batch8_backward_weights_scratch(s));
      make_conv_batch8_backward_weights(s, in.data(), d_out.data(), dw.data(), db.data(), scratch.data())();
      for (const auto& each : {out.plain(), d_in.plain(), db}) dw.insert(dw.end(), each.begin(), each.end());
      return dw;
    });
  }
}

TEST(Conv, idle_lanes_of_batch8_do_not_count) {
  const ConvShape s{.n = 3, .c = 2, .h = 6, .w = 6, .out_c = 5, .kh = 3, .kw = 3, .pad_h = 1, .pad_w = 1};
  constexpr ConvLayouts l{Layout::batch8, Layout::batch8};
  const auto x = random_values(s.in_shape().elements(), 12), dy = random_values(s.out_shape().elements(), 13);
  const auto gradients = [&](float garbage) {
    Activation in(s.in_shape(), l.in, x, garbage), out(s.out_shape(), l.out, dy, garbage);
    std::vector<float> dw(size(s.weight_shape())), db(static_cast<std::size_t>(s.out_c));
    Buffer scratch(conv_backward_weights_scratch(s, l));
    make_conv_backward_weights(s, l, in.data(), out.data(), dw.data(), db.data(), scratch.data())();
    dw.insert(dw.end(), db.begin(), db.end());
    return dw;
  };
  EXPECT_EQ(gradients(0.0f), gradients(std::numeric_limits<float>::infinity()));
}

TEST(Conv, preferred_layouts_are_supported_and_fit_the_channels) {
  for (const ConvShape& s : conv_shapes) EXPECT_TRUE(supports(s, preferred_layouts(s)));
  const ConvLayouts wide{Layout::channel8, Layout::channel8}, few{Layout::batch8, Layout::batch8};
  EXPECT_EQ(preferred_layouts(conv_shapes[1]), few);
  EXPECT_EQ(preferred_layouts(conv_shapes[8]), wide);  // depthwise
  EXPECT_EQ(preferred_layouts(conv_shapes[12]), wide);
}

TEST(Conv, impossible_shapes_are_named) {
  const ConvShape groups{.n = 1, .c = 8, .h = 4, .w = 4, .out_c = 8, .groups = 3};
  EXPECT_EQ(problem_with(groups), "3 groups do not divide 8 input and 8 output channels");
  const ConvShape large{.n = 1, .c = 1, .h = 4, .w = 4, .out_c = 1, .kh = 7, .kw = 7, .pad_h = 1, .pad_w = 1};
  EXPECT_EQ(problem_with(large), "the kernel 7x7 (dilation 1x1) is larger than the image 4x4 with padding 1x1");
  EXPECT_THROW(conv_forward_scratch(large, {}), BadInput);
  const ConvShape odd{.n = 1, .c = 3, .h = 4, .w = 4, .out_c = 8};
  EXPECT_THROW(conv_forward_scratch(odd, {Layout::channel8, Layout::channel8}), BadInput);
  EXPECT_THROW(conv_forward_scratch(odd, {Layout::batch8, Layout::plain}), BadInput);
}

}  // namespace
}  // namespace echelon::kernels
