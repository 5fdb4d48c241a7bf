// The numbers as they are: float32.

#include <cstring>

#include "codec/codecs.h"
#include "codec/piecewise.h"
#include "kernels/vector.h"

namespace echelon::codecs {

namespace {

class None : public PiecewiseCodec {
 public:
  explicit None(const std::vector<CodecPiece>& pieces)
      : PiecewiseCodec(one_part(pieces), [](std::size_t n) { return n * sizeof(float); }) {}
  Traits traits() const override { return {.lossless = true, .unbiased = true, .weights = true}; }

 private:
  void encode_part(std::span<const float> x, const Noise&, std::size_t, std::byte* out) const override {
    std::memcpy(out, x.data(), x.size_bytes());
  }
  void add_part(const std::byte* bytes, float scale, std::span<float> out) const override {
    // Through a small aligned piece: the bytes need not lie where floats may.
    alignas(64) float some[1024];
    for (std::size_t i = 0; i < out.size(); i += std::size(some)) {
      const std::size_t n = std::min(out.size() - i, std::size(some));
      std::memcpy(some, bytes + i * sizeof(float), n * sizeof(float));
      kernels::axpy(out.data() + i, scale, some, n);
    }
  }
  void decode_part(const std::byte* bytes, std::span<float> out) const override {
    std::memcpy(out.data(), bytes, out.size_bytes());
  }
};

CodecMaker make_none(OptionReader&) {
  return [](const std::vector<CodecPiece>& pieces) { return std::make_unique<None>(pieces); };
}

}  // namespace

CodecPart none() { return codec_part({"none", "float32", {}}, make_none, {.lossless = true}); }

}  // namespace echelon::codecs
