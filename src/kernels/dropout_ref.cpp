#include <cmath>

#include "kernels/dropout.h"

namespace echelon::kernels {

void ref_dropout(const Stream& stream, float p, const float* x, float* y, std::size_t n) {
  const auto threshold = static_cast<std::uint32_t>(static_cast<double>(p) * 0x1p32);
  const auto scale = static_cast<float>(1 / (1 - static_cast<double>(p)));
  for (std::size_t i = 0; i < n; ++i) y[i] = stream.bits(i) >= threshold ? x[i] * scale : 0;
}

void ref_fill_uniform(const Stream& stream, std::uint64_t offset, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = stream.uniform(offset + i);
}

void ref_fill_normal(const Stream& stream, std::uint64_t offset, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = stream.normal(offset + i);
}

}  // namespace echelon::kernels
