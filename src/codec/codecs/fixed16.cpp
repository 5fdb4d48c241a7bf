// 16-bit fixed point with stochastic rounding (Gupta et al. 2015): so many bits behind the point, two's complement,
// saturating. Within its range the expectation of what is decoded is the number, however small.

#include <cmath>

#include "codec/codecs.h"
#include "codec/kernels/levels.h"
#include "codec/piecewise.h"

namespace echelon::codecs {

namespace {

class Fixed16 : public PiecewiseCodec {
 public:
  Fixed16(const std::vector<CodecPiece>& pieces, int fraction_bits)
      : PiecewiseCodec(one_part(pieces), [](std::size_t n) { return 2 * n; }),
        unit_(std::ldexp(1.0f, -fraction_bits)) {}
  Traits traits() const override { return {.unbiased = true, .weights = true}; }

 private:
  void encode_part(std::span<const float> x, const Noise& noise, std::size_t first, std::byte* out) const override {
    round_to_int16(x, 1 / unit_, noise, first, out);
  }
  void add_part(const std::byte* bytes, float scale, std::span<float> out) const override {
    add_int16(bytes, scale * unit_, out);
  }
  void decode_part(const std::byte* bytes, std::span<float> out) const override { spread_int16(bytes, unit_, out); }
  float unit_;
};

CodecMaker make_fixed16(OptionReader& options) {
  const auto bits = static_cast<int>(options.integer("fraction_bits", 14, 0, 30));
  return [=](const std::vector<CodecPiece>& pieces) { return std::make_unique<Fixed16>(pieces, bits); };
}

}  // namespace

CodecPart fixed16() {
  return codec_part({"fixed16", "16-bit fixed point, rounded at random", {{"fraction_bits", "14", "behind the point"}}},
                    make_fixed16);
}

}  // namespace echelon::codecs
