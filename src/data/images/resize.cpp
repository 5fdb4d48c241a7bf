#include <algorithm>
#include <cmath>

#include "data/images/image.h"

namespace echelon::data {

namespace {

// For each output position along one axis, the input positions that it is made of, and their weights.
struct Taps {
  std::int64_t outputs, most;  // most inputs an output is made of
  Scratch first_memory, weight_memory;
  std::int32_t* first;  // [outputs]
  float* weights;       // [outputs, most]; zero where there is no input

  // Maps `outputs` positions onto [begin, begin + length) of `inputs`.
  Taps(std::int64_t inputs, double begin, double length, std::int64_t outputs_) : outputs(outputs_) {
    const double scale = length / static_cast<double>(outputs), reach = std::max(scale, 1.0);
    most = static_cast<std::int64_t>(std::ceil(reach)) * 2 + 1;
    first_memory.resize(static_cast<std::size_t>(outputs) * sizeof(std::int32_t));
    weight_memory.resize(static_cast<std::size_t>(outputs * most) * sizeof(float));
    first = reinterpret_cast<std::int32_t*>(first_memory.data());
    weights = reinterpret_cast<float*>(weight_memory.data());
    for (std::int64_t o = 0; o < outputs; ++o) {
      const double centre = begin + (static_cast<double>(o) + 0.5) * scale;
      const auto from = std::max<std::int64_t>(0, static_cast<std::int64_t>(std::floor(centre - reach + 0.5)));
      const auto to = std::min<std::int64_t>(inputs, static_cast<std::int64_t>(std::floor(centre + reach + 0.5)));
      double sum = 0;
      float* const w = weights + o * most;
      std::fill_n(w, most, 0.0f);
      const auto weight = [&](std::int64_t i) {
        return std::max(0.0, 1.0 - std::abs((static_cast<double>(i) + 0.5 - centre) / reach));
      };
      for (std::int64_t i = from; i < to && i - from < most; ++i) sum += weight(i);
      for (std::int64_t i = from; i < to && i - from < most; ++i) w[i - from] = static_cast<float>(weight(i) / sum);
      first[o] = static_cast<std::int32_t>(std::min(from, inputs - 1));
    }
  }
};

}  // namespace

void resize_image(std::span<const std::byte> pixels, ImageExtent from, int channels, ImageExtent to, Fit fit,
                  float* out) {
  const auto* const p = reinterpret_cast<const std::uint8_t*>(pixels.data());
  const std::int64_t area = to.height * to.width;
  if (from.height == to.height && from.width == to.width) {
    for (int c = 0; c < channels; ++c)
      for (std::int64_t i = 0; i < area; ++i)
        out[c * area + i] = static_cast<float>(p[i * channels + c]) * (1.0f / 255);
    return;
  }
  double height = static_cast<double>(from.height), width = static_cast<double>(from.width);
  if (fit == Fit::cover) {
    const double scale = std::min(height / static_cast<double>(to.height), width / static_cast<double>(to.width));
    height = scale * static_cast<double>(to.height), width = scale * static_cast<double>(to.width);
  }
  const Taps across(from.width, (static_cast<double>(from.width) - width) / 2, width, to.width);
  const Taps down(from.height, (static_cast<double>(from.height) - height) / 2, height, to.height);
  // Rows first, into [from.height, to.width, channels]; then columns.
  Scratch middle(static_cast<std::size_t>(from.height * to.width * channels) * sizeof(float));
  auto* const m = reinterpret_cast<float*>(middle.data());
  const std::int64_t row = to.width * channels;
  for (std::int64_t y = 0; y < from.height; ++y)
    for (std::int64_t x = 0; x < to.width; ++x) {
      const float* const w = across.weights + x * across.most;
      const std::int64_t first = across.first[x], taps = std::min(across.most, from.width - first);
      for (int c = 0; c < channels; ++c) {
        float sum = 0;
        for (std::int64_t i = 0; i < taps; ++i)
          sum += w[i] * static_cast<float>(p[(y * from.width + first + i) * channels + c]);
        m[y * row + x * channels + c] = sum;
      }
    }
  for (std::int64_t y = 0; y < to.height; ++y) {
    const float* const w = down.weights + y * down.most;
    const std::int64_t first = down.first[y], taps = std::min(down.most, from.height - first);
    for (std::int64_t x = 0; x < to.width; ++x)
      for (int c = 0; c < channels; ++c) {
        float sum = 0;
        for (std::int64_t i = 0; i < taps; ++i) sum += w[i] * m[(first + i) * row + x * channels + c];
        out[c * area + y * to.width + x] = sum * (1.0f / 255);
      }
  }
}

}  // namespace echelon::data
