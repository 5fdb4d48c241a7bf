// Flexpoint (Koester et al. 2017): 16-bit integers that share an exponent, chosen for each part so that the largest
// number just fits. Bytes of a part: the exponent of the unit (int16), then an int16 for each number, to the nearest.

#include <cmath>

#include "codec/codecs.h"
#include "codec/kernels/levels.h"
#include "codec/piecewise.h"
#include "codec/wire/wire.h"

namespace echelon::codecs {

namespace {

constexpr std::size_t exponent_bytes = sizeof(std::int16_t);
constexpr int least_exponent = -126, most_exponent = 127 - 15 + 1;  // units that are floats, and so are their inverses

class Flexpoint : public PiecewiseCodec {
 public:
  explicit Flexpoint(const std::vector<std::size_t>& parts)
      : PiecewiseCodec(parts, [](std::size_t n) { return exponent_bytes + 2 * n; }) {}
  Traits traits() const override { return {.weights = true}; }

 private:
  void encode_part(std::span<const float> x, const Noise&, std::size_t, std::byte* out) const override {
    const float largest = moments(x).largest;
    int exponent = most_exponent;  // where a number is infinite, or is none
    if (std::isfinite(largest)) {
      std::frexp(largest, &exponent);  // largest < 2^exponent
      exponent = std::max(exponent - 15, least_exponent);
      // Just below a power of two it would round to 32768: a step too far.
      if (std::nearbyint(std::ldexp(largest, -exponent)) > 32767) ++exponent;
    }
    put(out, static_cast<std::int16_t>(exponent));
    round_to_int16(x, std::ldexp(1.0f, -exponent), out + exponent_bytes);
  }
  static float unit(const std::byte* bytes) {
    const int exponent = get<std::int16_t>(bytes);
    if (exponent < least_exponent || exponent > most_exponent) fail("an encoded exponent is {}", exponent);
    return std::ldexp(1.0f, exponent);
  }
  void add_part(const std::byte* bytes, float scale, std::span<float> out) const override {
    add_int16(bytes + exponent_bytes, scale * unit(bytes), out);
  }
  void decode_part(const std::byte* bytes, std::span<float> out) const override {
    spread_int16(bytes + exponent_bytes, unit(bytes), out);
  }
};

CodecMaker make_flexpoint(OptionReader& options) {
  const auto bucket = static_cast<std::size_t>(options.integer("bucket", 0, 0, 1 << 30));
  return [=](const std::vector<CodecPiece>& pieces) { return std::make_unique<Flexpoint>(parts_of(pieces, bucket)); };
}

}  // namespace

CodecPart flexpoint() {
  return codec_part({"flexpoint",
                     "16-bit integers with one exponent in common",
                     {{"bucket", "0", "numbers with a scale of their own; 0: those of a parameter"}}},
                    make_flexpoint);
}

}  // namespace echelon::codecs
