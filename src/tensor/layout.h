#pragma once
// How the elements of an [N, C, H, W] activation lie in memory. Everything that is not an image is `plain`.
//   plain     row-major N C H W
//   channel8  N, C/8, H, W, 8c : oneDNN's nChw8c; needs C % 8 == 0. The fast layout for wide convolutions.
//   batch8    N/8, C, H, W, 8n : eight samples a vector, N rounded up to a multiple of 8 (the lanes past N hold zeros
//             or finite garbage and must not influence a result). The fast layout for few channels.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace echelon {

enum class Layout : std::uint8_t { plain, channel8, batch8 };

constexpr std::string_view name_of(Layout l) {
  return l == Layout::plain ? "plain" : l == Layout::channel8 ? "channel8" : "batch8";
}

// The elements that an activation occupies, padding included.
inline std::int64_t stored_elements(const Shape& shape, Layout layout) {
  if (layout != Layout::batch8) return shape.elements();
  return shape.elements() / shape[0] * ((shape[0] + 7) / 8 * 8);
}

}  // namespace echelon
