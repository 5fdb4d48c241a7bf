// TernGrad (Wen et al. 2017): each number becomes -s, 0 or +s, drawn so that the expectation is the number; s is the
// largest magnitude of the part (layer-wise ternarising) after clipping at `clip` standard deviations, which makes s
// much smaller and the expectation of the few outliers too small. Five numbers a byte.

#include <cmath>

#include "codec/codecs.h"
#include "codec/kernels/levels.h"
#include "codec/level_codec.h"

namespace echelon::codecs {

namespace {

class TernGrad : public LevelCodec {
 public:
  TernGrad(const std::vector<std::size_t>& parts, double clip)
      : LevelCodec(parts, {.top = 2, .centre = 1, .bits = 0}), clip_(clip) {}
  Traits traits() const override { return {.unbiased = clip_ == 0}; }

 private:
  float unit_of(std::span<const float> x) const override {
    const Moments m = moments(x);
    if (clip_ == 0) return m.largest;
    const double n = static_cast<double>(x.size()), mean = m.sum / n;
    const double limit = clip_ * std::sqrt(std::max(0.0, m.squares / n - mean * mean));
    // A part of equal numbers has no deviation to clip at.
    return limit > 0 && limit < static_cast<double>(m.largest) ? static_cast<float>(limit) : m.largest;
  }
  double clip_;
};

CodecMaker make_terngrad(OptionReader& options) {
  const double clip = options.number("clip_sigmas", 2.5, 0, 1e6);
  const auto bucket = static_cast<std::size_t>(options.integer("bucket", 0, 0, 1 << 30));
  return
      [=](const std::vector<CodecPiece>& pieces) { return std::make_unique<TernGrad>(parts_of(pieces, bucket), clip); };
}

}  // namespace

CodecPart terngrad() {
  return codec_part({"terngrad",
                     "-1, 0, 1 times the largest of the layer, unbiased but for the clipping",
                     {{"clip_sigmas", "2.5", "deviations at which numbers are clipped; 0: none"},
                      {"bucket", "0", "numbers with a scale of their own; 0: those of a parameter"}}},
                    make_terngrad);
}

}  // namespace echelon::codecs
