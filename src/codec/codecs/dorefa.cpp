// DoReFa-Net's gradients (Zhou et al. 2016): k bits a number, evenly spaced between plus and minus the largest
// magnitude of the part, after noise of half a step either way: that is stochastic rounding. Weights and activations at
// k bits are graph ops, not codecs.

#include "codec/codecs.h"
#include "codec/level_codec.h"
#include "kernels/reduce.h"

namespace echelon::codecs {

namespace {

class Dorefa : public LevelCodec {
 public:
  Dorefa(const std::vector<std::size_t>& parts, int bits)
      : LevelCodec(parts, {.top = top(bits), .centre = static_cast<float>(top(bits)) / 2, .bits = bits}),
        top_(static_cast<float>(top(bits))) {}
  Traits traits() const override { return {.unbiased = true}; }

 private:
  static std::uint8_t top(int bits) { return static_cast<std::uint8_t>((1 << bits) - 1); }
  float unit_of(std::span<const float> x) const override { return kernels::max_abs(x.data(), x.size()) * (2 / top_); }
  float top_;
};

CodecMaker make_dorefa(OptionReader& options) {
  const auto bits = static_cast<int>(options.integer("bits", 6, 1, 8));
  const auto bucket = static_cast<std::size_t>(options.integer("bucket", 0, 0, 1 << 30));
  return
      [=](const std::vector<CodecPiece>& pieces) { return std::make_unique<Dorefa>(parts_of(pieces, bucket), bits); };
}

}  // namespace

CodecPart dorefa() {
  return codec_part(
      {"dorefa",
       "k bits, with noise before rounding",
       {{"bits", "6", "of a number"}, {"bucket", "0", "numbers with a scale of their own; 0: those of a parameter"}}},
      make_dorefa);
}

}  // namespace echelon::codecs
