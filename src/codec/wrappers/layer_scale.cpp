// Each piece divided by its own root mean square before the inner codec sees it, and multiplied again by the receiver:
// so a threshold or a scale that the inner codec has for the whole run means the same in every layer. The root mean
// square is that of every call, or that of the first call in which the piece was not zero: inside error feedback the
// numbers grow while nothing is sent, and a threshold that grows with them would never be reached. Bytes: the scales of
// the pieces that are not empty (float32), then the inner codec's.

#include "base/error.h"
#include "codec/codecs.h"
#include "codec/kernels/layer_size.h"
#include "codec/wire/wire.h"
#include "codec/wrappers/wrapper.h"
#include "kernels/vector.h"

namespace echelon::codecs {

namespace {

class LayerScale : public Wrapper {
 public:
  LayerScale(std::unique_ptr<Codec> inner, const std::vector<CodecPiece>& pieces, bool first_call)
      : Wrapper(std::move(inner)), first_call_(first_call) {
    for (const CodecPiece& piece : pieces)
      if (piece.size > 0) sizes_.push_back(piece.size);
    scaled_.resize(numbers_of(pieces));
    scales_.resize(sizes_.size());
  }
  Traits traits() const override {
    Traits traits = inner_->traits();
    traits.lossless = false;
    return traits;
  }
  std::size_t most_bytes() const override { return header() + inner_->most_bytes(); }
  double usual_bytes() const override { return static_cast<double>(header()) + inner_->usual_bytes(); }

  std::size_t encode(std::span<const float> values, const CodecStep& step, std::span<std::byte> out) override {
    choose_scales([&](std::size_t begin, std::size_t size) { return layer_size(values.subspan(begin, size)); });
    return encode_scaled(values, step, out);
  }
  std::size_t encode_rest(std::span<float> values, const CodecStep& step, std::span<std::byte> out) override {
    choose_scales([&](std::size_t begin, std::size_t size) { return layer_size(values.subspan(begin, size)); });
    return encode_scaled_rest(values, step, out);
  }
  std::size_t encode_sum(std::span<float> values, std::span<const float> more, const CodecStep& step,
                         std::span<std::byte> out) override {
    if (first_call_) return Codec::encode_sum(values, more, step, out);
    invariant(values.size() == more.size(), "sums are of as many numbers");
    choose_scales([&](std::size_t begin, std::size_t size) {
      return add_and_size(values.subspan(begin, size), more.data() + begin);
    });
    return encode_scaled_rest(values, step, out);
  }
  void add(std::span<const std::byte> bytes, float scale, std::span<float> out) const override {
    if (inner_->traits().sparse) {
      float* to = out.data();
      const auto one = [&](std::size_t i, float value) { to[i] += scale * value; };
      return each_sent(bytes, std::ref(one));
    }
    BytesIn in(bytes);
    const auto scales = in.take(header());
    inner_->decode(in.rest(), scaled_);
    std::size_t begin = 0;
    for (std::size_t k = 0; k < sizes_.size(); begin += sizes_[k++])
      kernels::axpy(out.data() + begin, scale * get<float>(scales.data() + k * sizeof(float)), scaled_.data() + begin,
                    sizes_[k]);
  }
  void decode(std::span<const std::byte> bytes, std::span<float> out) const override {
    if (inner_->traits().sparse) return Codec::decode(bytes, out);
    BytesIn in(bytes);
    const auto scales = in.take(header());
    inner_->decode(in.rest(), out);
    std::size_t begin = 0;
    for (std::size_t k = 0; k < sizes_.size(); begin += sizes_[k++])
      kernels::scale(out.data() + begin, out.data() + begin, get<float>(scales.data() + k * sizeof(float)), sizes_[k]);
  }
  void each_sent(std::span<const std::byte> bytes, const Sent& f) const override {
    BytesIn in(bytes);
    const auto scales = in.take(header());
    std::size_t k = 0, end = sizes_.empty() ? 0 : sizes_[0];
    const auto one = [&](std::size_t i, float value) {
      while (i >= end) end += sizes_[++k];
      f(i, value * get<float>(scales.data() + k * sizeof(float)));
    };
    inner_->each_sent(in.rest(), std::ref(one));
  }
  std::vector<State> state() override {
    std::vector<State> all = inner_->state();
    if (first_call_) all.push_back({"layer_scales", std::as_writable_bytes(std::span(scales_))});
    return all;
  }

 private:
  // By measure(first number of a piece, how many they are).
  template <class Measure>
  void choose_scales(const Measure& measure) {
    std::size_t begin = 0;
    for (std::size_t k = 0; k < sizes_.size(); begin += sizes_[k++])
      if (!first_call_ || scales_[k] == 0) scales_[k] = measure(begin, sizes_[k]);
  }
  std::size_t encode_scaled(std::span<const float> values, const CodecStep& step, std::span<std::byte> out) {
    divide(values, out);
    return header() + inner_->encode(scaled_, step, out.subspan(header()));
  }
  std::size_t encode_scaled_rest(std::span<float> values, const CodecStep& step, std::span<std::byte> out) {
    if (inner_->traits().sparse) {  // few numbers change
      const std::size_t bytes = encode_scaled(values, step, out);
      add(out.first(bytes), -1, values);
      return bytes;
    }
    divide(values, out);
    const std::size_t bytes = header() + inner_->encode_rest(scaled_, step, out.subspan(header()));
    std::size_t begin = 0;
    for (std::size_t k = 0; k < sizes_.size(); begin += sizes_[k++])
      kernels::scale(values.data() + begin, scaled_.data() + begin, get<float>(out.data() + k * sizeof(float)),
                     sizes_[k]);
    return bytes;
  }
  // The header, and the numbers divided by their scales.
  void divide(std::span<const float> values, std::span<std::byte> out) {
    invariant(values.size() == scaled_.size() && out.size() >= most_bytes(),
              "a codec encodes the run that it was made for");
    std::size_t begin = 0;
    for (std::size_t k = 0; k < sizes_.size(); begin += sizes_[k++]) {
      const float scale = scales_[k] == 0 ? 1 : scales_[k];
      put(out.data() + k * sizeof(float), scale);
      kernels::scale(scaled_.data() + begin, values.data() + begin, 1 / scale, sizes_[k]);
    }
  }

  std::size_t header() const { return sizes_.size() * sizeof(float); }
  bool first_call_;
  std::vector<std::size_t> sizes_;
  std::vector<float> scales_;
  mutable std::vector<float> scaled_;
};

}  // namespace

std::unique_ptr<Codec> layer_scale(std::unique_ptr<Codec> inner, const std::vector<CodecPiece>& pieces,
                                   bool first_call) {
  return std::make_unique<LayerScale>(std::move(inner), pieces, first_call);
}

}  // namespace echelon::codecs
