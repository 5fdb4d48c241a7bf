#include "codec/codec.h"

#include <algorithm>

namespace echelon {

std::size_t Codec::encode_rest(std::span<float> values, const CodecStep& step, std::span<std::byte> out) {
  const std::size_t bytes = encode(values, step, out);
  add(out.first(bytes), -1, values);
  return bytes;
}

void Codec::decode(std::span<const std::byte> bytes, std::span<float> out) const {
  std::ranges::fill(out, 0.0f);
  add(bytes, 1, out);
}

void Codec::clear_sent(std::span<const std::byte>, std::span<float> out) const { std::ranges::fill(out, 0.0f); }

}  // namespace echelon
