#include "kernels/conv/conv.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "kernels/conv/conv_batch8.h"
#include "kernels/conv/conv_onednn.h"
#include "kernels/conv/conv_winograd.h"

namespace echelon::kernels {
namespace {

bool is_batch8(ConvLayouts layouts) { return layouts.in == Layout::batch8; }

void check(const ConvShape& s, ConvLayouts layouts) {
  if (const std::string problem = problem_with(s); !problem.empty()) bad_input("convolution: {}", problem);
  if (!supports(s, layouts))
    bad_input(
        "convolution from {} channels in layout {} to {} in layout {}: channel8 needs a multiple of 8 channels, "
        "and only plain -> channel8 may change the layout",
        s.c, name_of(layouts.in), s.out_c, name_of(layouts.out));
}

// The numbers of the largest frame that a kernel makes of one sample: the input within its padding, or the output's
// gradient within the kernel's reach.
double most_framed(const ConvShape& s) {
  const auto real = [](std::int64_t n) { return static_cast<double>(n); };
  const double reach_h = real(s.dilation_h) * real(s.kh - 1), reach_w = real(s.dilation_w) * real(s.kw - 1);
  const double h = real(s.h) + 2 * real(s.pad_h), w = real(s.w) + 2 * real(s.pad_w);
  return std::max(real(s.c) * h * w, real(s.out_c) * (h + reach_h) * (w + reach_w) / (real(s.stride_h) * s.stride_w));
}

// No fewer than ConvShape::macs().
double most_products(const ConvShape& s) {
  const auto real = [](std::int64_t n) { return static_cast<double>(n); };
  return real(s.n) * (real(s.h) + 2.0 * s.pad_h) * (real(s.w) + 2.0 * s.pad_w) * real(s.out_c) * real(s.c / s.groups) *
         real(s.kh) * real(s.kw);
}

}  // namespace

std::string problem_with(const ConvShape& s) {
  if (s.n < 1 || s.c < 1 || s.h < 1 || s.w < 1 || s.out_c < 1)
    return fmt::format("sizes must be positive, but the input is {} and there are {} output channels",
                       to_string(s.in_shape()), s.out_c);
  if (s.kh < 1 || s.kw < 1 || s.stride_h < 1 || s.stride_w < 1 || s.dilation_h < 1 || s.dilation_w < 1)
    return fmt::format("kernel {}x{}, stride {}x{} and dilation {}x{} must be positive", s.kh, s.kw, s.stride_h,
                       s.stride_w, s.dilation_h, s.dilation_w);
  if (s.pad_h < 0 || s.pad_w < 0) return fmt::format("padding {}x{} must not be negative", s.pad_h, s.pad_w);
  if (s.groups < 1 || s.c % s.groups != 0 || s.out_c % s.groups != 0)
    return fmt::format("{} groups do not divide {} input and {} output channels", s.groups, s.c, s.out_c);
  if (const double most = 0x1p31; most_framed(s) > most)
    return fmt::format("a sample with its padding has {} numbers; a convolution takes at most {}",
                       human_count(most_framed(s)), human_count(most));
  if (const double most = 0x1p62; most_products(s) > most)
    return fmt::format("{} multiplications are more than can be counted", most_products(s));
  if (s.h + std::int64_t{2} * s.pad_h < s.dilation_h * (s.kh - 1) + 1 ||
      s.w + std::int64_t{2} * s.pad_w < s.dilation_w * (s.kw - 1) + 1)
    return fmt::format("the kernel {}x{} (dilation {}x{}) is larger than the image {}x{} with padding {}x{}", s.kh,
                       s.kw, s.dilation_h, s.dilation_w, s.h, s.w, s.pad_h, s.pad_w);
  return {};
}

bool supports(const ConvShape& s, ConvLayouts layouts) {
  if (layouts.in == Layout::channel8 && s.c % 8 != 0) return false;
  if (layouts.out == Layout::channel8 && s.out_c % 8 != 0) return false;
  return layouts.in == layouts.out || (layouts.in == Layout::plain && layouts.out == Layout::channel8);
}

ConvLayouts preferred_layouts(const ConvShape& s) {
  const std::int64_t ci = s.c / s.groups, co = s.out_c / s.groups;
  const bool depthwise = ci == 1 && co == 1 && s.groups > 1;
  if (s.c % 8 == 0 && s.out_c % 8 == 0 && ((ci % 8 == 0 && co % 8 == 0) || depthwise))
    return {Layout::channel8, Layout::channel8};
  if (s.groups == 1 && s.c <= 3 && s.out_c % 8 == 0 && s.out_c >= 32) return {Layout::plain, Layout::channel8};
  const bool addressable = most_framed(s) < 0x1p28;  // batch8 keeps places among eight samples' numbers in 32 bits
  if (s.n >= 4 && addressable) return {Layout::batch8, Layout::batch8};
  return {Layout::plain, Layout::plain};
}

std::size_t conv_forward_scratch(const ConvShape& s, ConvLayouts layouts) {
  check(s, layouts);
  if (is_batch8(layouts)) return conv_batch8_forward_scratch(s);
  if (winograd_suits(s, layouts)) return conv_winograd_forward_scratch(s);
  return conv_onednn_forward_scratch(s, layouts);
}

std::function<void()> make_conv_forward(const ConvShape& s, ConvLayouts layouts, const float* x, const float* w,
                                        const float* bias, bool relu, float* y, std::byte* scratch) {
  check(s, layouts);
  if (is_batch8(layouts)) return make_conv_batch8_forward(s, x, w, bias, relu, y, scratch);
  if (winograd_suits(s, layouts)) return make_conv_winograd_forward(s, x, w, bias, relu, y, scratch);
  return make_conv_onednn_forward(s, layouts, x, w, bias, relu, y, scratch);
}

std::size_t conv_backward_data_scratch(const ConvShape& s, ConvLayouts layouts) {
  check(s, layouts);
  if (is_batch8(layouts)) return conv_batch8_backward_data_scratch(s);
  if (winograd_suits(s, layouts)) return conv_winograd_backward_data_scratch(s);
  return conv_onednn_backward_data_scratch(s, layouts);
}

std::function<void()> make_conv_backward_data(const ConvShape& s, ConvLayouts layouts, const float* dy, const float* w,
                                              float* dx, std::byte* scratch) {
  check(s, layouts);
  if (is_batch8(layouts)) return make_conv_batch8_backward_data(s, dy, w, dx, scratch);
  if (winograd_suits(s, layouts)) return make_conv_winograd_backward_data(s, dy, w, dx, scratch);
  return make_conv_onednn_backward_data(s, layouts, dy, w, dx, scratch);
}

std::size_t conv_backward_weights_scratch(const ConvShape& s, ConvLayouts layouts) {
  check(s, layouts);
  if (is_batch8(layouts)) return conv_batch8_backward_weights_scratch(s);
  if (winograd_suits(s, layouts)) return conv_winograd_backward_weights_scratch(s);
  return conv_onednn_backward_weights_scratch(s, layouts);
}

std::function<void()> make_conv_backward_weights(const ConvShape& s, ConvLayouts layouts, const float* x,
                                                 const float* dy, float* dw, float* db, std::byte* scratch) {
  check(s, layouts);
  if (is_batch8(layouts)) return make_conv_batch8_backward_weights(s, x, dy, dw, db, scratch);
  if (winograd_suits(s, layouts)) return make_conv_winograd_backward_weights(s, x, dy, dw, db, scratch);
  return make_conv_onednn_backward_weights(s, layouts, x, dy, dw, db, scratch);
}

}  // namespace echelon::kernels
