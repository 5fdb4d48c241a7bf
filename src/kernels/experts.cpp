#include "kernels/experts.h"

#include <algorithm>

#include "kernels/reduce.h"
#include "kernels/vector.h"

// Rows are long and contiguous: the library's copy, sum and dot product are the fast loops here.
namespace echelon::kernels {

void route(const Experts& e, const float* probabilities, std::int32_t* choice, std::int32_t* slot, float* gate,
           float* load, std::int32_t* places) {
  std::fill_n(places, e.experts, 0);
  std::fill_n(load, e.experts, 0.0f);
  for (std::size_t r = 0; r < e.rows; ++r) {
    const float* p = probabilities + r * e.experts;
    const auto first = static_cast<std::size_t>(std::max_element(p, p + e.experts) - p);
    choice[r * e.top] = static_cast<std::int32_t>(first);
    load[first] += 1;
    gate[r * e.top] = p[first];
    if (e.top == 1) continue;
    std::size_t second = first == 0 ? 1 : 0;
    for (std::size_t k = 0; k < e.experts; ++k)
      if (k != first && p[k] > p[second]) second = k;
    choice[r * e.top + 1] = static_cast<std::int32_t>(second);
    const float both = p[first] + p[second];
    gate[r * e.top] = p[first] / both;
    gate[r * e.top + 1] = p[second] / both;
  }
  for (std::size_t k = 0; k < e.top; ++k)
    for (std::size_t r = 0; r < e.rows; ++r) {
      const std::int32_t expert = choice[r * e.top + k];
      std::int32_t& place = places[expert];
      const bool fits = place < static_cast<std::int32_t>(e.capacity);
      slot[r * e.top + k] = fits ? expert * static_cast<std::int32_t>(e.capacity) + place++ : -1;
    }
  scale(load, load, 1 / static_cast<float>(e.rows), e.experts);
}

void route_grad(const Experts& e, const float* probabilities, const std::int32_t* choice, const float* d_gate,
                float* d_probabilities) {
  std::fill_n(d_probabilities, e.rows * e.experts, 0.0f);
  for (std::size_t r = 0; r < e.rows; ++r) {
    const float *p = probabilities + r * e.experts, *d = d_gate + r * e.top;
    float* dp = d_probabilities + r * e.experts;
    const std::int32_t* chosen = choice + r * e.top;
    if (e.top == 1) {
      dp[chosen[0]] = d[0];
      continue;
    }
    // g1 = p1 / (p1 + p2) and g2 = 1 - g1.
    const float both = p[chosen[0]] + p[chosen[1]], along = (d[0] - d[1]) / (both * both);
    dp[chosen[0]] = along * p[chosen[1]];
    dp[chosen[1]] = -along * p[chosen[0]];
  }
}

void dispatch(const Experts& e, Slots slots, const std::int32_t* slot, const float* x, float* y, std::size_t width) {
  std::fill_n(y, static_cast<std::size_t>(slots.count) * width, 0.0f);
  for (std::size_t r = 0; r < e.rows; ++r)
    for (std::size_t k = 0; k < e.top; ++k)
      if (const std::int32_t to = slot[r * e.top + k]; slots.has(to))
        copy(y + static_cast<std::size_t>(to - slots.first) * width, x + r * width, width);
}

void combine(const Experts& e, Slots slots, const std::int32_t* slot, const float* gate, const float* y, float* out,
             std::size_t width) {
  std::fill_n(out, e.rows * width, 0.0f);
  for (std::size_t r = 0; r < e.rows; ++r)
    for (std::size_t k = 0; k < e.top; ++k)
      if (const std::int32_t from = slot[r * e.top + k]; slots.has(from))
        axpy(out + r * width, gate == nullptr ? 1.0f : gate[r * e.top + k],
             y + static_cast<std::size_t>(from - slots.first) * width, width);
}

void combine_grad(const Experts& e, Slots slots, const std::int32_t* slot, const float* gate, const float* y,
                  const float* d_out, float* dy, float* d_gate, std::size_t width) {
  std::fill_n(dy, static_cast<std::size_t>(slots.count) * width, 0.0f);
  for (std::size_t r = 0; r < e.rows; ++r)
    for (std::size_t k = 0; k < e.top; ++k) {
      const std::int32_t at = slot[r * e.top + k];
      d_gate[r * e.top + k] = 0;
      if (!slots.has(at)) continue;
      const std::size_t from = static_cast<std::size_t>(at - slots.first) * width;
      scale(dy + from, d_out + r * width, gate[r * e.top + k], width);
      d_gate[r * e.top + k] = static_cast<float>(dot(y + from, d_out + r * width, width));
    }
}

}  // namespace echelon::kernels
