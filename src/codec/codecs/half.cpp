// Half the bytes: IEEE half precision (11 bits of precision, from 6e-8 to 65504) or bfloat16 (8 bits, the range of
// float32). Rounded to the nearest.

#include "codec/kernels/half.h"

#include "codec/codecs.h"
#include "codec/piecewise.h"

namespace echelon::codecs {

namespace {

struct HalfFormat {
  void (*to)(std::span<const float>, std::byte*);
  void (*add)(const std::byte*, float, std::span<float>);
  void (*from)(const std::byte*, std::span<float>);
};

class HalfCodec : public PiecewiseCodec {
 public:
  HalfCodec(const std::vector<CodecPiece>& pieces, HalfFormat format)
      : PiecewiseCodec(one_part(pieces), [](std::size_t n) { return 2 * n; }), format_(format) {}
  Traits traits() const override { return {.weights = true}; }

 private:
  void encode_part(std::span<const float> x, const Noise&, std::size_t, std::byte* out) const override {
    format_.to(x, out);
  }
  void add_part(const std::byte* bytes, float scale, std::span<float> out) const override {
    format_.add(bytes, scale, out);
  }
  void decode_part(const std::byte* bytes, std::span<float> out) const override { format_.from(bytes, out); }

  HalfFormat format_;
};

CodecMaker make_half(HalfFormat format) {
  return [format](const std::vector<CodecPiece>& pieces) { return std::make_unique<HalfCodec>(pieces, format); };
}

CodecMaker make_fp16(OptionReader&) { return make_half({to_fp16, add_fp16, from_fp16}); }

CodecMaker make_bf16(OptionReader&) { return make_half({to_bf16, add_bf16, from_bf16}); }

}  // namespace

CodecPart bf16() { return codec_part({"bf16", "float32 without its lower half", {}}, make_bf16); }

CodecPart fp16() { return codec_part({"fp16", "half precision", {}}, make_fp16); }

}  // namespace echelon::codecs
