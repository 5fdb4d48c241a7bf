#include "codec/codec.h"

#include <algorithm>

namespace echelon {

void Codec::decode(std::span<const std::byte> bytes, std::span<float> out) const {
  std::ranges::fill(out, 0.0f);
  add(bytes, 1, out);
}

}  // namespace echelon
