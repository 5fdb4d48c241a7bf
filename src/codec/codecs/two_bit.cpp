// MXNet's 2-bit compression: plus the threshold, minus the threshold, or nothing. What a number lacks to the threshold,
// or exceeds it by, is carried over by error feedback. Two bits a number, nothing else.

#include "codec/codecs.h"
#include "codec/level_codec.h"
#include "codec/levels.h"

namespace echelon::codecs {

namespace {

constexpr LevelFormat format{.top = 2, .centre = 1, .bits = 2};

class TwoBit : public PiecewiseCodec {
 public:
  TwoBit(const std::vector<CodecPiece>& pieces, float threshold)
      : PiecewiseCodec(one_part(pieces), [](std::size_t n) { return packed_levels(n, format); }),
        threshold_(threshold) {}
  Traits traits() const override { return {}; }

 private:
  void encode_part(std::span<const float> x, const Noise&, std::size_t, std::byte* out) const override {
    write_levels(x.size(), format, out, [&](std::size_t i, std::size_t some, std::uint8_t* levels) {
      classify(x.subspan(i, some), threshold_, levels);
    });
  }
  void encode_part_rest(std::span<float> x, const Noise&, std::size_t, std::byte* out) const override {
    write_and_read_levels(
        x.size(), format, out,
        [&](std::size_t i, std::size_t some, std::uint8_t* levels) {
          classify(x.subspan(i, some), threshold_, levels);
        },
        [&](std::size_t i, std::size_t some, const std::uint8_t* levels) {
          add_levels(levels, threshold_, -threshold_, x.subspan(i, some));
        });
  }
  void add_part(const std::byte* bytes, float scale, std::span<float> out) const override {
    const float unit = scale * threshold_;
    read_levels(bytes, out.size(), format, [&](std::size_t i, std::size_t some, const std::uint8_t* levels) {
      add_levels(levels, -unit, unit, out.subspan(i, some));
    });
  }
  void decode_part(const std::byte* bytes, std::span<float> out) const override {
    read_levels(bytes, out.size(), format, [&](std::size_t i, std::size_t some, const std::uint8_t* levels) {
      spread_levels(levels, -threshold_, threshold_, out.subspan(i, some));
    });
  }
  float threshold_;
};

}  // namespace

CodecMaker two_bit(OptionReader& options) {
  const auto threshold = static_cast<float>(options.number("threshold", 2, 1e-30, 1e30));
  return [=](const std::vector<CodecPiece>& pieces) { return std::make_unique<TwoBit>(pieces, threshold); };
}

}  // namespace echelon::codecs
