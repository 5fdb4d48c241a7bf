#include "kernels/conv_batch8_plan.h"

#include <algorithm>

namespace echelon::kernels::batch8 {
namespace {

// Which output row a tap of the input row `phase` (+ j * stride) meets, for j = 0; or nothing.
struct Meeting {
  bool exists;
  std::int64_t at;
};
Meeting meeting(std::int64_t phase, std::int64_t k, int stride, int pad, int dilation) {
  const std::int64_t distance = phase + pad - k * dilation;
  if ((distance % stride + stride) % stride != 0) return {false, 0};
  return {true, distance / stride};
}

// How far taps reach out of [0, extent) before and after, over all phases that occur.
std::pair<std::int64_t, std::int64_t> reach(std::int64_t in, std::int64_t out, std::int64_t k_extent, int stride,
                                            int pad, int dilation) {
  std::int64_t before = 0, after = 0;
  for (std::int64_t phase = 0; phase < std::min<std::int64_t>(stride, in); ++phase)
    for (std::int64_t k = 0; k < k_extent; ++k) {
      const auto [exists, at] = meeting(phase, k, stride, pad, dilation);
      if (!exists) continue;
      const std::int64_t last = (in - phase - 1) / stride;
      before = std::max(before, -at);
      after = std::max(after, last + at - (out - 1));
    }
  return {before, after};
}

}  // namespace

Source forward_source(const ConvShape& s) {
  const auto far = [](std::int64_t out, int stride, std::int64_t k, int dilation, std::int64_t in, int pad) {
    return std::max<std::int64_t>(0, (out - 1) * stride + (k - 1) * dilation + 1 - in - pad);
  };
  return {s.c,
          s.h,
          s.w,
          s.pad_h,
          s.pad_w,
          far(s.out_h(), s.stride_h, s.kh, s.dilation_h, s.h, s.pad_h),
          far(s.out_w(), s.stride_w, s.kw, s.dilation_w, s.w, s.pad_w)};
}

TapConv forward_taps(const ConvShape& s) {
  const Source src = forward_source(s);
  const std::int64_t ci_g = s.c / s.groups, co_g = s.out_c / s.groups;
  TapConv t;
  for (std::int64_t ci = 0; ci < ci_g; ++ci)
    for (std::int64_t ky = 0; ky < s.kh; ++ky)
      for (std::int64_t kx = 0; kx < s.kw; ++kx) {
        t.taps.push_back(
            static_cast<std::int32_t>(ci * src.plane() + ky * s.dilation_h * src.row() + kx * s.dilation_w * lanes));
        t.weights.push_back(static_cast<std::int32_t>((ci * s.kh + ky) * s.kw + kx));
      }
  t.rows = s.out_h(), t.cols = s.out_w();
  t.src_row = s.stride_h * src.row(), t.src_px = s.stride_w * lanes, t.src_group = ci_g * src.plane();
  t.out_row = s.out_w() * lanes, t.out_px = lanes, t.out_plane = s.out_h() * s.out_w() * lanes;
  t.out_channels = co_g;
  t.weight_channel = ci_g * s.kh * s.kw, t.weight_group = co_g * t.weight_channel;
  return t;
}

Source backward_data_source(const ConvShape& s) {
  const auto [top, bottom] = reach(s.h, s.out_h(), s.kh, s.stride_h, s.pad_h, s.dilation_h);
  const auto [left, right] = reach(s.w, s.out_w(), s.kw, s.stride_w, s.pad_w, s.dilation_w);
  return {s.out_c, s.out_h(), s.out_w(), top, left, bottom, right};
}

std::vector<TapConv> backward_data_taps(const ConvShape& s) {
  const Source src = backward_data_source(s);
  const std::int64_t ci_g = s.c / s.groups, co_g = s.out_c / s.groups;
  std::vector<TapConv> phases;
  for (std::int64_t py = 0; py < std::min<std::int64_t>(s.stride_h, s.h); ++py)
    for (std::int64_t px = 0; px < std::min<std::int64_t>(s.stride_w, s.w); ++px) {
      TapConv t;
      for (std::int64_t co = 0; co < co_g; ++co)
        for (std::int64_t ky = 0; ky < s.kh; ++ky)
          for (std::int64_t kx = 0; kx < s.kw; ++kx) {
            const Meeting y = meeting(py, ky, s.stride_h, s.pad_h, s.dilation_h);
            const Meeting x = meeting(px, kx, s.stride_w, s.pad_w, s.dilation_w);
            if (!y.exists || !x.exists) continue;
            t.taps.push_back(
                static_cast<std::int32_t>(co * src.plane() + (y.at + src.top) * src.row() + (x.at + src.left) * lanes));
            t.weights.push_back(static_cast<std::int32_t>((co * ci_g * s.kh + ky) * s.kw + kx));
          }
      t.rows = (s.h - py - 1) / s.stride_h + 1, t.cols = (s.w - px - 1) / s.stride_w + 1;
      t.src_row = src.row(), t.src_px = lanes, t.src_group = co_g * src.plane();
      t.out_start = (py * s.w + px) * lanes;
      t.out_row = s.stride_h * s.w * lanes, t.out_px = s.stride_w * lanes, t.out_plane = s.h * s.w * lanes;
      t.out_channels = ci_g;
      t.weight_channel = s.kh * s.kw, t.weight_group = co_g * ci_g * s.kh * s.kw;
      phases.push_back(std::move(t));
    }
  return phases;
}

}  // namespace echelon::kernels::batch8
