// Strom 2015: numbers whose magnitude has reached the threshold, as plus or minus the threshold; what is left of them,
// and all others, are carried over by error feedback. Bytes: sparse.h without values, the flag is the sign: 2 bytes a
// number that is sent. Where the threshold is meant in units of each layer's root mean square of the first call
// (layer_scale), every piece's own threshold (float32) comes first, and each piece has a sparse.h of its own: the same
// as layer_scale.cpp around it would say, in fewer passes over the numbers.

#include <algorithm>
#include <array>
#include <cmath>

#include "codec/codecs.h"
#include "codec/layer_size.h"
#include "codec/piecewise.h"
#include "codec/select.h"
#include "codec/sparse.h"
#include "kernels/vector.h"

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
    return write<false>(values, {}, {}, out);
  }
  std::size_t encode_rest(std::span<float> values, const CodecStep&, std::span<std::byte> out) override {
    return write<true>(values, {}, values, out);
  }
  std::size_t encode_sum(std::span<float> values, std::span<const float> more, const CodecStep& step,
                         std::span<std::byte> out) override {
    invariant(values.size() == more.size(), "sums are of as many numbers");
    if (std::ranges::count(sizes_, 0.0f) > 0) return Codec::encode_sum(values, more, step, out);  // sizes are of sums
    return write<true>(values, more, values, out);
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

  // `rest` is where the values can be written if they are to keep what is left of them, after `more`, if it is not
  // empty, has been added.
  template <bool keeps_rest>
  std::size_t write(std::span<const float> values, std::span<const float> more, std::span<float> rest,
                    std::span<std::byte> out) {
    invariant(values.size() == numbers_ && out.size() >= most_bytes(), "a codec encodes the run that it was made for");
    std::size_t bytes = header(), begin = 0;
    for (std::size_t k = 0; k < parts_.size(); begin += parts_[k++]) {
      const auto part = values.subspan(begin, parts_[k]);
      float threshold = threshold_;
      if (scaled_) {
        if (sizes_[k] == 0) sizes_[k] = layer_size(part);
        threshold = in_units_of(sizes_[k], threshold_);
        put(out.data() + k * sizeof(float), threshold);
      }
      const float value[2] = {threshold, -threshold};
      SparseWriter writer(out.data() + bytes, part.size());
      for (std::size_t i = 0; i < part.size(); i += places_.size()) {
        const auto x = part.subspan(i, std::min(places_.size(), part.size() - i));
        float* left = rest.data() + begin + i;
        if (!more.empty()) kernels::add_into(left, more.data() + begin + i, x.size());
        const std::size_t found = places_at_least(x, Side::both, order_bits(threshold, Side::both), 0, places_.data());
        for (const std::uint32_t place : std::span(places_).first(found)) {
          const bool negative = std::signbit(x[place]);
          writer.entry<0>(i + place, negative, nullptr);
          if constexpr (keeps_rest) left[place] -= value[negative];
        }
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
  std::vector<float> sizes_;  // of each part in the first call in which it was not zero
  std::array<std::uint32_t, 4096> places_;
};

}  // namespace

CodecMaker strom(OptionReader& options) {
  const auto threshold = static_cast<float>(options.number("threshold", 3, 1e-30, 1e30));
  const bool scaled = options.text("layer_scale", "first_call") == "first_call";
  return [=](const std::vector<CodecPiece>& pieces) { return std::make_unique<Strom>(pieces, threshold, scaled); };
}

}  // namespace echelon::codecs
