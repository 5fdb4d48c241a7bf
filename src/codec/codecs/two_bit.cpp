// MXNet's 2-bit compression: plus the threshold, minus the threshold, or nothing. What a number lacks to the threshold,
// or exceeds it by, is carried over by error feedback. Two bits a number, nothing else; or, where the threshold is
// meant in units of each layer's root mean square in every call (layer_scale), first each piece's own threshold
// (float32): the same as layer_scale.cpp around it would do, in fewer passes over the numbers.

#include "codec/codecs.h"
#include "codec/kernels/layer_size.h"
#include "codec/kernels/levels.h"
#include "codec/level_codec.h"
#include "codec/wire/wire.h"

namespace echelon::codecs {

namespace {

constexpr LevelFormat two_bit_format{.top = 2, .centre = 1, .bits = 2};

class TwoBit : public PiecewiseCodec {
 public:
  TwoBit(const std::vector<CodecPiece>& pieces, float threshold, bool scaled)
      : PiecewiseCodec(scaled ? parts_of(pieces, 0) : one_part(pieces),
                       [&](std::size_t n) { return (scaled ? sizeof(float) : 0) + packed_levels(n, two_bit_format); }),
        threshold_(threshold),
        header_(scaled ? sizeof(float) : 0) {}
  Traits traits() const override { return {}; }

 private:
  void encode_part(std::span<const float> x, const Noise&, std::size_t, std::byte* out) const override {
    const float threshold = header_ == 0 ? threshold_ : in_units_of(layer_size(x), threshold_);
    if (header_ > 0) put(out, threshold);
    write_levels(x.size(), two_bit_format, out + header_, [&](std::size_t i, std::size_t some, std::uint8_t* levels) {
      classify(x.subspan(i, some), threshold, levels);
    });
  }
  void encode_part_rest(std::span<float> x, const Noise&, std::size_t, std::byte* out) const override {
    write_rest(x, header_ == 0 ? threshold_ : in_units_of(layer_size(x), threshold_), out);
  }
  void encode_part_sum(std::span<float> x, const float* more, const Noise& noise, std::size_t first,
                       std::byte* out) const override {
    if (header_ == 0) return PiecewiseCodec::encode_part_sum(x, more, noise, first, out);
    write_rest(x, in_units_of(add_and_size(x, more), threshold_), out);
  }
  void write_rest(std::span<float> x, float threshold, std::byte* out) const {
    if (header_ > 0) put(out, threshold);
    write_and_read_levels(
        x.size(), two_bit_format, out + header_,
        [&](std::size_t i, std::size_t some, std::uint8_t* levels) { classify(x.subspan(i, some), threshold, levels); },
        [&](std::size_t i, std::size_t some, const std::uint8_t* levels) {
          add_levels(levels, threshold, -threshold, x.subspan(i, some));
        });
  }
  void add_part(const std::byte* bytes, float scale, std::span<float> out) const override {
    const float unit = scale * threshold_of(bytes);
    read_levels(bytes + header_, out.size(), two_bit_format,
                [&](std::size_t i, std::size_t some, const std::uint8_t* levels) {
                  add_levels(levels, -unit, unit, out.subspan(i, some));
                });
  }
  void decode_part(const std::byte* bytes, std::span<float> out) const override {
    const float unit = threshold_of(bytes);
    read_levels(bytes + header_, out.size(), two_bit_format,
                [&](std::size_t i, std::size_t some, const std::uint8_t* levels) {
                  spread_levels(levels, -unit, unit, out.subspan(i, some));
                });
  }

  float threshold_of(const std::byte* bytes) const { return header_ == 0 ? threshold_ : get<float>(bytes); }
  float threshold_;
  std::size_t header_;
};

CodecMaker make_two_bit(OptionReader& options) {
  const auto threshold = static_cast<float>(options.number("threshold", 2, 1e-30, 1e30));
  const bool scaled = options.text("layer_scale", "every_call") == "every_call";
  return [=](const std::vector<CodecPiece>& pieces) { return std::make_unique<TwoBit>(pieces, threshold, scaled); };
}

}  // namespace

CodecPart two_bit() {
  return codec_part({"two_bit",
                     "zero, or plus or minus a threshold",
                     {{"threshold", "2", "sent at once, in units of the layer_scale"}}},
                    make_two_bit, {.error_feedback = true, .layer_scale = "every_call", .scales_itself = true});
}

}  // namespace echelon::codecs
