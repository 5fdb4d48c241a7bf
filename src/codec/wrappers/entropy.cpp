// The inner codec's bytes through an entropy coder (range_coder.h), or as they are where that would not make them
// fewer. Bytes: how many they are uncoded (uint32; the highest bit: they follow as they are), then they or their code.

#include "base/error.h"
#include "codec/codecs.h"
#include "codec/wire/range_coder.h"
#include "codec/wire/wire.h"
#include "codec/wrappers/wrapper.h"

namespace echelon::codecs {

namespace {

constexpr std::size_t count_bytes = sizeof(std::uint32_t);
constexpr std::uint32_t as_they_are = 1u << 31;

class Entropy : public Wrapper {
 public:
  explicit Entropy(std::unique_ptr<Codec> inner) : Wrapper(std::move(inner)), plain_(inner_->most_bytes()) {
    invariant(plain_.size() < as_they_are, "entropy coding is for runs of less than 2^31 bytes");
  }
  std::size_t most_bytes() const override { return count_bytes + inner_->most_bytes(); }
  bool same_size_always() const override { return false; }
  // How many it saves depends on the numbers; of the levels of a quantiser about half, of sparse places little.
  double usual_bytes() const override {
    return static_cast<double>(count_bytes) + inner_->usual_bytes() * (inner_->traits().sparse ? 0.95 : 0.6);
  }
  std::size_t encode(std::span<const float> values, const CodecStep& step, std::span<std::byte> out) override {
    return write(inner_->encode(values, step, plain_), out);
  }
  std::size_t encode_rest(std::span<float> values, const CodecStep& step, std::span<std::byte> out) override {
    return write(inner_->encode_rest(values, step, plain_), out);
  }
  std::size_t encode_sum(std::span<float> values, std::span<const float> more, const CodecStep& step,
                         std::span<std::byte> out) override {
    return write(inner_->encode_sum(values, more, step, plain_), out);
  }
  void add(std::span<const std::byte> bytes, float scale, std::span<float> out) const override {
    inner_->add(plain(bytes), scale, out);
  }
  void decode(std::span<const std::byte> bytes, std::span<float> out) const override {
    inner_->decode(plain(bytes), out);
  }
  void each_sent(std::span<const std::byte> bytes, const Sent& f) const override { inner_->each_sent(plain(bytes), f); }

 private:
  std::size_t write(std::size_t count, std::span<std::byte> out) {
    invariant(out.size() >= most_bytes(), "a codec writes where there is room");
    const auto bytes = std::span(plain_).first(count);
    const auto coded = coder_.encode(bytes, out.subspan(count_bytes, count));
    put(out.data(), static_cast<std::uint32_t>(count) | (coded ? 0 : as_they_are));
    if (!coded) std::ranges::copy(bytes, out.begin() + count_bytes);
    return count_bytes + coded.value_or(count);
  }
  std::span<const std::byte> plain(std::span<const std::byte> bytes) const {
    BytesIn in(bytes);
    const auto word = in.take<std::uint32_t>();
    const std::size_t count = word & ~as_they_are;
    if (count > plain_.size()) fail("{} bytes are said to be coded, {} is the most", count, plain_.size());
    if ((word & as_they_are) != 0) {
      const auto all = in.take(count);
      in.done();
      return all;
    }
    coder_.decode(in.rest(), std::span(plain_).first(count));
    return std::span(plain_).first(count);
  }

  mutable std::vector<std::byte> plain_;
  mutable RangeCoder coder_;
};

}  // namespace

std::unique_ptr<Codec> entropy(std::unique_ptr<Codec> inner) { return std::make_unique<Entropy>(std::move(inner)); }

}  // namespace echelon::codecs
