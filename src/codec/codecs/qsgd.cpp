// QSGD (Alistarh et al. 2017): in each bucket of numbers, s levels between 0 and the bucket's norm on either side,
// drawn so that the expectation is the number. Most levels are 0 then, which the entropy coder around it makes use of.

#include <bit>
#include <cmath>

#include "codec/codecs.h"
#include "codec/kernels/levels.h"
#include "codec/level_codec.h"

namespace echelon::codecs {

namespace {

class Qsgd : public LevelCodec {
 public:
  Qsgd(const std::vector<std::size_t>& parts, int levels, bool largest)
      : LevelCodec(parts, {.top = static_cast<std::uint8_t>(2 * levels),
                           .centre = static_cast<float>(levels),
                           .bits = static_cast<int>(std::bit_width(static_cast<unsigned>(2 * levels)))}),
        levels_(static_cast<float>(levels)),
        largest_(largest) {}
  Traits traits() const override { return {.unbiased = true}; }

 private:
  float unit_of(std::span<const float> x) const override {
    const Moments m = moments(x);
    return (largest_ ? m.largest : static_cast<float>(std::sqrt(m.squares))) / levels_;
  }
  float levels_;
  bool largest_;
};

CodecMaker make_qsgd(OptionReader& options) {
  const auto levels = static_cast<int>(options.integer("levels", 7, 1, 127));
  const bool largest = options.choice("norm", "l2", {"l2", "max"}) == "max";
  const auto bucket = static_cast<std::size_t>(options.integer("bucket", 512, 0, 1 << 30));
  return [=](const std::vector<CodecPiece>& pieces) {
    return std::make_unique<Qsgd>(parts_of(pieces, bucket), levels, largest);
  };
}

}  // namespace

CodecPart qsgd() {
  return codec_part({"qsgd",
                     "random rounding to levels of the norm, unbiased",
                     {{"levels", "7", "besides zero, on either side"},
                      {"norm", "\"l2\"", "of a bucket: l2 or max"},
                      {"bucket", "512", "numbers with a scale of their own; 0: those of a parameter"}}},
                    make_qsgd);
}

}  // namespace echelon::codecs
