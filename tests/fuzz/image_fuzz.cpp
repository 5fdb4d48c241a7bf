// Any bytes are either refused with BadInput or are a picture that can be resized. The first byte chooses the channels.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "data/images/image.h"

int fuzz_image(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  if (size == 0) return 0;
  const int channels = data[0] % 2 == 0 ? 1 : 3;
  try {
    data::Scratch pixels;
    const auto extent = data::decode_image(std::as_bytes(std::span(data + 1, size - 1)), "input", channels, pixels);
    std::vector<float> out(static_cast<std::size_t>(7 * 5 * channels));
    data::resize_image(pixels.bytes(), extent, channels, {7, 5}, data::Fit::cover, out.data());
    invariant(std::ranges::all_of(out, [](float v) { return v >= -0.001f && v <= 1.001f; }),
              "pixels lie between 0 and 1");
  } catch (const BadInput&) {
  }
  return 0;
}
