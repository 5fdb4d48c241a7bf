// A random mask (Konecny et al. 2016): of every `spacing` numbers one, drawn anew in every call, times the spacing, so
// that the expectation is the number; or, for error feedback, as it is. The receiver draws the same places from the key
// that comes with them. Bytes: the key (two words), then a float32 for each stretch.

#include <algorithm>
#include <cmath>

#include "codec/codecs.h"
#include "codec/kernels/noise.h"
#include "codec/wire/wire.h"

namespace echelon::codecs {

namespace {

constexpr std::size_t key_bytes = 2 * sizeof(std::uint32_t);

class RandomK : public Codec {
 public:
  RandomK(std::size_t numbers, std::size_t spacing, bool unbiased)
      : numbers_(numbers), spacing_(spacing), unbiased_(unbiased) {}
  Traits traits() const override { return {.unbiased = unbiased_, .sparse = spacing_ > 1}; }
  std::size_t most_bytes() const override { return key_bytes + (numbers_ + spacing_ - 1) / spacing_ * sizeof(float); }
  std::size_t encode(std::span<const float> values, const CodecStep& step, std::span<std::byte> out) override {
    invariant(values.size() == numbers_ && out.size() >= most_bytes(), "a codec encodes the run that it was made for");
    const Noise noise(step.random);
    put(out.data(), noise.before);
    put(out.data() + sizeof(std::uint32_t), noise.between);
    std::byte* at = out.data() + key_bytes;
    for (std::size_t begin = 0; begin < numbers_; begin += spacing_, at += sizeof(float)) {
      const std::size_t count = std::min(spacing_, numbers_ - begin);
      put(at, values[place(noise, begin, count)] * (unbiased_ ? static_cast<float>(count) : 1));
    }
    return most_bytes();
  }
  void add(std::span<const std::byte> bytes, float scale, std::span<float> out) const override {
    invariant(out.size() == numbers_, "a codec decodes the run that it was made for");
    each(bytes, [&](std::size_t i, const std::byte* value) { out[i] += scale * get<float>(value); });
  }
  void each_sent(std::span<const std::byte> bytes, const Sent& f) const override {
    each(bytes, [&](std::size_t i, const std::byte* value) { f(i, get<float>(value)); });
  }

 private:
  static std::size_t place(const Noise& noise, std::size_t begin, std::size_t count) {
    return begin + ((static_cast<std::uint64_t>(noise.bits(begin)) * count) >> 32);
  }
  template <class F>
  void each(std::span<const std::byte> bytes, const F& f) const {
    if (bytes.size() != most_bytes()) fail("{} encoded bytes came, not {}", bytes.size(), most_bytes());
    const Noise noise(
        {get<std::uint32_t>(bytes.data()), get<std::uint32_t>(bytes.data() + sizeof(std::uint32_t)), 0, 0});
    const std::byte* at = bytes.data() + key_bytes;
    for (std::size_t begin = 0; begin < numbers_; begin += spacing_, at += sizeof(float))
      f(place(noise, begin, std::min(spacing_, numbers_ - begin)), at);
  }
  std::size_t numbers_, spacing_;
  bool unbiased_;
};

CodecMaker make_random_k(OptionReader& options) {
  const double share = options.number("share", 0.01, 1e-7, 1);
  // Where what is left out is carried over, nothing is lost anyway, and numbers sent too large would never come to
  // rest.
  const bool carried = options.flag("error_feedback", false) || options.number("momentum", 0, 0, 0.9999) > 0;
  const auto spacing = static_cast<std::size_t>(std::llround(1 / share));
  return [=](const std::vector<CodecPiece>& pieces) {
    return std::make_unique<RandomK>(numbers_of(pieces), spacing, !carried);
  };
}

}  // namespace

CodecPart random_k() {
  return codec_part(
      {"random_k", "a random mask, another one in every exchange", {{"share", "0.01", "of the numbers that is sent"}}},
      make_random_k);
}

}  // namespace echelon::codecs
