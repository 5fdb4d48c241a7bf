// Strom 2015: numbers whose magnitude has reached the threshold, as plus or minus the threshold; what is left of them,
// and all others, are carried over by error feedback. Bytes: sparse.h without values, the flag is the sign: 2 bytes a
// number that is sent. Where the threshold is meant in units of each layer's root mean square of the first call
// (layer_scale), every piece's own threshold (float32) comes first, and each piece has a sparse.h of its own: the same
// as layer_scale.cpp around it would say, in fewer passes over the numbers.

#include <algorithm>
#include <array>

#include "codec/codecs.h"
#include "codec/kernels/layer_size.h"
#include "codec/kernels/reached.h"
#include "codec/piecewise.h"
#include "codec/wire/sparse.h"

namespace echelon::codecs {

namespace {

class Strom : public Codec {
 public:
  Strom(const std::vector<CodecPiece>& pieces, float threshold, bool scaled)
      : threshold_(threshold), scaled_(scaled), parts_(scaled ? parts_of(pieces, 0) : one_part(pieces)) {
    for (const std::size_t part : parts_) numbers_ += part;
    if (scaled) sizes_.resize(parts_.size());
  }
  Traits traits() const override { return {.sparse = true}; }
  std::size_t most_bytes() const override { return bytes_of(1); }
  // It depends on the numbers alone; with a threshold that is worth its while one in a hundred is sent.
  double usual_bytes() const override { return static_cast<double>(bytes_of(100)); }

  std::size_t encode(std::span<const float> values, const CodecStep&, std::span<std::byte> out) override {
    return write(values, out,
                 [&](std::size_t at, std::size_t n, auto... rest) { return reached(values.subspan(at, n), rest...); });
  }
  std::size_t encode_rest(std::span<float> values, const CodecStep&, std::span<std::byte> out) override {
    return write(values, out, [&](std::size_t at, std::size_t n, auto... rest) {
      return take_reached(values.subspan(at, n), rest...);
    });
  }
  std::size_t encode_sum(std::span<float> values, std::span<const float> more, const CodecStep& step,
                         std::span<std::byte> out) override {
    invariant(values.size() == more.size(), "sums are of as many numbers");
    if (std::ranges::count(sizes_, 0.0f) > 0) return Codec::encode_sum(values, more, step, out);  // sizes are of sums
    return write(values, out, [&](std::size_t at, std::size_t n, auto... rest) {
      return add_and_take_reached(values.subspan(at, n), more.data() + at, rest...);
    });
  }
  void add(std::span<const std::byte> bytes, float scale, std::span<float> out) const override {
    invariant(out.size() == numbers_, "a codec decodes the run that it was made for");
    float* to = out.data();
    each(bytes, [&](std::size_t i, float value) { to[i] += scale * value; });
  }
  void each_sent(std::span<const std::byte> bytes, const Sent& f) const override { each(bytes, f); }
  std::vector<State> state() override {
    if (!scaled_) return {};
    return {{"layer_scales", std::as_writable_bytes(std::span(sizes_))}};
  }

 private:
  std::size_t header() const { return scaled_ ? parts_.size() * sizeof(float) : 0; }
  std::size_t bytes_of(std::size_t one_in) const {
    std::size_t bytes = header();
    for (const std::size_t part : parts_) bytes += sparse_bytes(part, part / one_in, 0);
    return bytes;
  }

  // The threshold of part k, whose numbers these are.
  float threshold_of(std::size_t k, std::span<const float> part) {
    if (!scaled_) return threshold_;
    if (sizes_[k] == 0) sizes_[k] = layer_size(part);
    return in_units_of(sizes_[k], threshold_);
  }

  // By reached(some numbers' place, how many they are, their threshold, their first place in a block, their entries).
  template <class Reached>
  std::size_t write(std::span<const float> values, std::span<std::byte> out, const Reached& reached) {
    invariant(values.size() == numbers_ && out.size() >= most_bytes(), "a codec encodes the run that it was made for");
    std::size_t bytes = header(), begin = 0;
    for (std::size_t k = 0; k < parts_.size(); begin += parts_[k++]) {
      const float threshold = threshold_of(k, values.subspan(begin, parts_[k]));
      if (scaled_) put(out.data() + k * sizeof(float), threshold);
      SparseWriter writer(out.data() + bytes, parts_[k]);
      for (std::size_t i = 0; i < parts_[k]; i += some) {
        const std::size_t found =
            reached(begin + i, std::min(some, parts_[k] - i), threshold, i % sparse_block, entries_.data());
        writer.entries(i, std::span(entries_).first(found));
      }
      bytes += writer.finish();
    }
    return bytes;
  }

  template <class F>
  void each(std::span<const std::byte> bytes, const F& f) const {
    BytesIn in(bytes);
    const auto thresholds = in.take(header());
    std::size_t begin = 0;
    for (std::size_t k = 0; k < parts_.size(); begin += parts_[k++]) {
      const float threshold = scaled_ ? get<float>(thresholds.data() + k * sizeof(float)) : threshold_;
      const float value[2] = {threshold, -threshold};
      read_sparse<0>(in, parts_[k],
                     [&](std::size_t i, bool negative, const std::byte*) { f(begin + i, value[negative]); });
    }
    in.done();
  }
  float threshold_;
  bool scaled_;
  std::vector<std::size_t> parts_;
  std::size_t numbers_ = 0;
  std::vector<float> sizes_;                 // of each part in the first call in which it was not zero
  static constexpr std::size_t some = 4096;  // numbers looked at in one go, all of one block
  std::array<std::uint16_t, some + entries_beyond> entries_;
};

CodecMaker make_strom(OptionReader& options) {
  const auto threshold = static_cast<float>(options.number("threshold", 3, 1e-30, 1e30));
  const bool scaled = options.text("layer_scale", "first_call") == "first_call";
  return [=](const std::vector<CodecPiece>& pieces) { return std::make_unique<Strom>(pieces, threshold, scaled); };
}

}  // namespace

CodecPart strom() {
  return codec_part({"strom",
                     "numbers that have reached a threshold, as plus or minus it",
                     {{"threshold", "3", "in units of the layer_scale"}}},
                    make_strom, {.error_feedback = true, .layer_scale = "first_call", .scales_itself = true});
}

}  // namespace echelon::codecs
