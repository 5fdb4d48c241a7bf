// Every change of layout is a set of transposes of 8 rows: of samples against pixels (batch8), of channels against
// pixels (channel8), or of samples against the channels of one pixel (channel8 to batch8 and back). They are done in
// 4x4 pieces in registers; the copy is limited by memory, so vectors of four lanes are wide enough on every machine.
#include "kernels/relayout.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/simd/simd_targets.h"

#include <hwy/highway.h>

#include "kernels/simd/lanes8-inl.h"

namespace echelon::kernels {
namespace {

using lanes8::HWY_NAMESPACE::transpose_4x4;

// to[col][row] = from[row][col] for rows x cols elements.
void transpose(const float* from, std::int64_t from_step, std::int64_t rows, std::int64_t cols, float* to,
               std::int64_t to_step) {
  const std::int64_t whole_rows = rows / 4 * 4, whole_cols = cols / 4 * 4;
  // The side with eight lanes is the inner loop, so that its cache lines are touched while they are hot.
  if (rows <= 8) {
    for (std::int64_t c = 0; c < whole_cols; c += 4)
      for (std::int64_t r = 0; r < whole_rows; r += 4)
        transpose_4x4(from + r * from_step + c, from_step, to + c * to_step + r, to_step);
  } else {
    for (std::int64_t r = 0; r < whole_rows; r += 4)
      for (std::int64_t c = 0; c < whole_cols; c += 4)
        transpose_4x4(from + r * from_step + c, from_step, to + c * to_step + r, to_step);
  }
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = r < whole_rows ? whole_cols : 0; c < cols; ++c) to[c * to_step + r] = from[r * from_step + c];
}

// Zeroes the lanes past the last sample of a batch8 block.
void zero_idle_lanes(float* block, std::int64_t vectors, std::int64_t samples) {
  for (std::int64_t i = 0; i < vectors; ++i) std::fill(block + i * 8 + samples, block + i * 8 + 8, 0.0f);
}

// All blocks of eight samples (the last may be smaller): act(first sample, number of samples).
template <typename Act>
void for_each_block(std::int64_t n, Act act) {
  for (std::int64_t first = 0; first < n; first += 8) act(first, std::min<std::int64_t>(8, n - first));
}

}  // namespace

void relayout(const Shape& s, Layout from, const float* x, Layout to, float* y) {
  invariant((from != Layout::channel8 && to != Layout::channel8) || s[1] % 8 == 0, "channel8 fits the channels");
  const std::int64_t n = s[0], c = s[1], pixels = s[2] * s[3], sample = c * pixels;
  if (from == to) {
    std::copy(x, x + stored_elements(s, from), y);
  } else if (from == Layout::plain && to == Layout::channel8) {
    for (std::int64_t i = 0; i < n * c; i += 8) transpose(x + i * pixels, pixels, 8, pixels, y + i * pixels, 8);
  } else if (from == Layout::channel8 && to == Layout::plain) {
    for (std::int64_t i = 0; i < n * c; i += 8) transpose(x + i * pixels, 8, pixels, 8, y + i * pixels, pixels);
  } else if (from == Layout::plain && to == Layout::batch8) {
    for_each_block(n, [&](std::int64_t first, std::int64_t samples) {
      transpose(x + first * sample, sample, samples, sample, y + first * sample, 8);
    });
  } else if (from == Layout::batch8 && to == Layout::plain) {
    for_each_block(n, [&](std::int64_t first, std::int64_t samples) {
      transpose(x + first * sample, 8, sample, samples, y + first * sample, sample);
    });
  } else {  // channel8 and batch8: per pixel and eight channels, samples against channels
    for_each_block(n, [&](std::int64_t first, std::int64_t samples) {
      for (std::int64_t cb = 0; cb < c; cb += 8)
        for (std::int64_t p = 0; p < pixels; ++p) {
          const std::int64_t in_channel8 = first * sample + cb * pixels + p * 8;
          const std::int64_t in_batch8 = first * sample + (cb * pixels + p) * 8;
          if (from == Layout::channel8)
            transpose(x + in_channel8, sample, samples, 8, y + in_batch8, pixels * 8);
          else
            transpose(x + in_batch8, pixels * 8, 8, samples, y + in_channel8, sample);
        }
    });
  }
  if (to == Layout::batch8 && n % 8 != 0) zero_idle_lanes(y + n / 8 * 8 * sample, sample, n % 8);
}

void ref_relayout(const Shape& s, Layout from, const float* x, Layout to, float* y) {
  const auto position = [&](Layout layout, std::int64_t n, std::int64_t c, std::int64_t p) {
    const std::int64_t pixels = s[2] * s[3];
    if (layout == Layout::channel8) return ((n * (s[1] / 8) + c / 8) * pixels + p) * 8 + c % 8;
    if (layout == Layout::batch8) return ((n / 8 * s[1] + c) * pixels + p) * 8 + n % 8;
    return (n * s[1] + c) * pixels + p;
  };
  std::fill(y, y + stored_elements(s, to), 0.0f);
  for (std::int64_t n = 0; n < s[0]; ++n)
    for (std::int64_t c = 0; c < s[1]; ++c)
      for (std::int64_t p = 0; p < s[2] * s[3]; ++p) y[position(to, n, c, p)] = x[position(from, n, c, p)];
}

}  // namespace echelon::kernels
