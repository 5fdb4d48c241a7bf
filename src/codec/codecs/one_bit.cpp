// 1-bit SGD (Seide, Fu, Droppo, Li, Yu 2014): of each number its sign; of each part (a parameter, or each of its rows)
// the mean of the numbers on either side of zero, which is what the receiver puts there. Meant with error feedback.
// Bytes of a part: mean below zero, mean above (float32 each), then a bit a number.

#include "codec/codecs.h"
#include "codec/kernels/signs.h"
#include "codec/piecewise.h"
#include "codec/wire/wire.h"

namespace echelon::codecs {

namespace {

constexpr std::size_t sign_means_bytes = 2 * sizeof(float);

class OneBit : public PiecewiseCodec {
 public:
  explicit OneBit(const std::vector<std::size_t>& parts)
      : PiecewiseCodec(parts, [](std::size_t n) { return sign_means_bytes + (n + 7) / 8; }) {}
  Traits traits() const override { return {}; }

 private:
  void encode_part(std::span<const float> x, const Noise&, std::size_t, std::byte* out) const override {
    const SignMeans means = pack_signs(x, out + sign_means_bytes);
    put(out, means.negative);
    put(out + sizeof(float), means.positive);
  }
  static SignMeans means(const std::byte* bytes, float scale) {
    return {scale * get<float>(bytes), scale * get<float>(bytes + sizeof(float))};
  }
  void add_part(const std::byte* bytes, float scale, std::span<float> out) const override {
    add_signs(bytes + sign_means_bytes, means(bytes, scale), out);
  }
  void decode_part(const std::byte* bytes, std::span<float> out) const override {
    spread_signs(bytes + sign_means_bytes, means(bytes, 1), out);
  }
};

CodecMaker make_one_bit(OptionReader& options) {
  const bool rows = options.choice("per", "row", {"piece", "row"}) == "row";
  return [rows](const std::vector<CodecPiece>& pieces) {
    return std::make_unique<OneBit>(rows ? rows_of(pieces) : parts_of(pieces, 0));
  };
}

}  // namespace

CodecPart one_bit() {
  return codec_part({"one_bit",
                     "the sign, and the mean of either side",
                     {{"per", "\"row\"", "a mean for each piece, or for each row of it"}}},
                    make_one_bit, {.error_feedback = true});
}

}  // namespace echelon::codecs
