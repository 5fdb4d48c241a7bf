// A chunk of pixels with all their channels is copied into scratch with a margin of zero channels on both sides, so
// that a window is a few loads at a fixed distance:
//   plain, batch8   scratch [channel][position]: eight neighbouring positions a vector, next channel `positions` on
//   channel8        scratch [position][channel]: eight channels a vector, next channel one float on
#include "kernels/norm/lrn.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/simd/simd_targets.h"
#include "tensor/buffer.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm/lrn.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

#include "kernels/simd/lanes8-inl.h"

#ifndef ECHELON_KERNELS_LRN_ONCE
#define ECHELON_KERNELS_LRN_ONCE
namespace echelon::kernels::response {

// Where a chunk's vectors lie. A vector is (outer, inner): its floats in the activation and its place in scratch.
struct Chunk {
  std::int64_t outer, inner;                  // how many vectors
  std::int64_t outer_step, inner_step;        // in the activation
  std::int64_t scratch_outer, scratch_inner;  // in scratch
  std::int64_t margin, channel_step;          // scratch: of the first vector, from one channel to the next
  std::int64_t last = 8;                      // floats in the last inner vector
};

}  // namespace echelon::kernels::response
#endif

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::response::HWY_NAMESPACE {
using namespace lanes8::HWY_NAMESPACE;

// s^-beta.
HWY_INLINE F8 power(F8 s, float beta) {
  if (beta == 0.75f) {  // everybody's choice: two roots instead of a logarithm and an exponential
    const F8 root = sqrt(s);
    return F8::set(1.0f) / (root * sqrt(root));
  }
  for (int i = 0; i < parts; ++i) s.v[i] = hn::Exp(Tag(), hn::Mul(hn::Set(Tag(), -beta), hn::Log(Tag(), s.v[i])));
  return s;
}

template <class Act>
HWY_INLINE void for_each(const Chunk& k, const Act& act) {
  for (std::int64_t o = 0; o < k.outer; ++o)
    for (std::int64_t i = 0; i < k.inner; ++i)
      act(o * k.outer_step + i * k.inner_step, k.margin + o * k.scratch_outer + i * k.scratch_inner,
          i + 1 == k.inner ? k.last : 8);
}

// The sum of `size` vectors of scratch, from `before` channels ahead of `at`.
HWY_INLINE F8 window(const Chunk& k, const float* scratch, std::int64_t at, int before, int size) {
  const float* from = scratch + at - before * k.channel_step;
  F8 sum = F8::load(from);
  for (int j = 1; j < size; ++j) sum = sum + F8::load(from + j * k.channel_step);
  return sum;
}

HWY_INLINE void put_squares(const Chunk& k, const float* x, float* squares) {
  for_each(k, [&](std::int64_t at, std::int64_t place, std::int64_t floats) HWY_ATTR {
    const F8 v = F8::load(x + at, floats);
    (v * v).store(squares + place);
  });
}

HWY_INLINE F8 s_at(const LrnShape& s, const Chunk& k, const float* squares, std::int64_t place) {
  return mul_add(window(k, squares, place, s.size / 2, s.size), F8::set(s.alpha / static_cast<float>(s.size)),
                 F8::set(s.k));
}

void forward(const LrnShape& s, const Chunk& k, const float* x, float* y, float* squares) {
  put_squares(k, x, squares);
  for_each(k, [&](std::int64_t at, std::int64_t place, std::int64_t floats) HWY_ATTR {
    (F8::load(x + at, floats) * power(s_at(s, k, squares, place), s.beta)).store(y + at, floats);
  });
}

// dx[c] = dy[c] * s[c]^-beta - 2 alpha beta / size * x[c] * (sum of dy x s^(-beta-1) over the windows that contain c).
void backward(const LrnShape& s, const Chunk& k, const float* x, const float* dy, float* dx, float* squares,
              float* terms) {
  put_squares(k, x, squares);
  for_each(k, [&](std::int64_t at, std::int64_t place, std::int64_t floats) HWY_ATTR {
    const F8 sum = s_at(s, k, squares, place), scaled = F8::load(dy + at, floats) * power(sum, s.beta);
    scaled.store(dx + at, floats);
    (scaled * F8::load(x + at, floats) / sum).store(terms + place);
  });
  const F8 factor = F8::set(-2.0f * s.alpha * s.beta / static_cast<float>(s.size));
  for_each(k, [&](std::int64_t at, std::int64_t place, std::int64_t floats) HWY_ATTR {
    const F8 sum = window(k, terms, place, (s.size - 1) / 2, s.size);
    mul_add(F8::load(x + at, floats) * factor, sum, F8::load(dx + at, floats)).store(dx + at, floats);
  });
}

}  // namespace echelon::kernels::response::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echelon::kernels {
namespace response {
namespace {
HWY_EXPORT(forward);
HWY_EXPORT(backward);

constexpr std::int64_t positions = 64;    // floats of a channel in a chunk (plain, batch8); pixels of one are 8 of them
constexpr std::int64_t chunk_pixels = 8;  // channel8

std::int64_t margin_channels(const LrnShape& s) { return (s.size + 7) / 8 * 8; }

std::int64_t scratch_floats(const LrnShape& s, Layout layout) {
  return (s.c + 2 * margin_channels(s)) * (layout == Layout::channel8 ? chunk_pixels : positions);
}

// Calls act(chunk, where it starts in the activation) until all is done.
template <typename Act>
void for_each_chunk(const LrnShape& s, Layout layout, Act act) {
  const std::int64_t margin = margin_channels(s);
  if (layout == Layout::channel8) {
    invariant(s.c % 8 == 0, "channel8 fits the channels");
    const std::int64_t row = s.c + 2 * margin;
    for (std::int64_t n = 0; n < s.n; ++n)
      for (std::int64_t p = 0; p < s.pixels; p += chunk_pixels)
        act(Chunk{std::min(chunk_pixels, s.pixels - p), s.c / 8, 8, s.pixels * 8, row, 8, margin, 1},
            n * s.c * s.pixels + p * 8);
    return;
  }
  const std::int64_t plane = s.pixels * (layout == Layout::batch8 ? 8 : 1);
  for (std::int64_t n = 0; n < (layout == Layout::batch8 ? (s.n + 7) / 8 : s.n); ++n)
    for (std::int64_t p = 0; p < plane; p += positions) {
      const std::int64_t floats = std::min(positions, plane - p), vectors = (floats + 7) / 8;
      act(Chunk{s.c, vectors, plane, 8, positions, 8, margin * positions, positions, floats - (vectors - 1) * 8},
          n * s.c * plane + p);
    }
}

}  // namespace
}  // namespace response

using namespace response;

std::size_t lrn_scratch(const LrnShape& s, Layout layout) {
  return 2 * aligned(static_cast<std::size_t>(scratch_floats(s, layout)) * sizeof(float));
}

void lrn_forward(const LrnShape& s, Layout layout, const float* x, float* y, std::byte* scratch) {
  float* squares = reinterpret_cast<float*>(scratch);
  std::fill_n(squares, scratch_floats(s, layout), 0.0f);
  for_each_chunk(s, layout, [&](const Chunk& chunk, std::int64_t at) {
    HWY_DYNAMIC_DISPATCH(forward)(s, chunk, x + at, y + at, squares);
  });
}

void lrn_backward(const LrnShape& s, Layout layout, const float* x, const float* dy, float* dx, std::byte* scratch) {
  float* squares = reinterpret_cast<float*>(scratch);
  float* terms = reinterpret_cast<float*>(scratch + lrn_scratch(s, layout) / 2);
  std::fill_n(squares, scratch_floats(s, layout), 0.0f);
  std::fill_n(terms, scratch_floats(s, layout), 0.0f);
  for_each_chunk(s, layout, [&](const Chunk& chunk, std::int64_t at) {
    HWY_DYNAMIC_DISPATCH(backward)(s, chunk, x + at, dy + at, dx + at, squares, terms);
  });
}

}  // namespace echelon::kernels
#endif
