// Strom 2015: numbers whose magnitude has reached the threshold, as plus or minus the threshold; what is left of them,
// and all others, are carried over by error feedback. Bytes: sparse.h without values, the flag is the sign: 2 bytes a
// number that is sent.

#include <bit>

#include "codec/codecs.h"
#include "codec/select.h"
#include "codec/sparse.h"

namespace echelon::codecs {

namespace {

class Strom : public Codec {
 public:
  Strom(std::size_t numbers, float threshold) : numbers_(numbers), threshold_(threshold) {}
  Traits traits() const override { return {.sparse = true}; }
  std::size_t most_bytes() const override { return sparse_bytes(numbers_, numbers_, 0); }
  // It depends on the numbers alone; with a threshold that is worth its while one in a hundred is sent.
  double usual_bytes() const override { return static_cast<double>(sparse_bytes(numbers_, numbers_ / 100, 0)); }

  std::size_t encode(std::span<const float> values, const CodecStep&, std::span<std::byte> out) override {
    invariant(values.size() == numbers_ && out.size() >= most_bytes(), "a codec encodes the run that it was made for");
    SparseWriter writer(out.data(), numbers_);
    for (std::size_t begin = 0; begin < numbers_; begin += places_.size()) {
      const auto x = values.subspan(begin, std::min(places_.size(), numbers_ - begin));
      const std::size_t found = places_at_least(x, Side::both, order_bits(threshold_, Side::both), 0, places_.data());
      for (std::size_t k = 0; k < found; ++k) writer.entry<0>(begin + places_[k], std::signbit(x[places_[k]]), nullptr);
    }
    return writer.finish();
  }
  void add(std::span<const std::byte> bytes, float scale, std::span<float> out) const override {
    const float value = scale * threshold_;
    each(bytes, out, [&](std::size_t i, bool negative) { out[i] += negative ? -value : value; });
  }
  void clear_sent(std::span<const std::byte> bytes, std::span<float> out) const override {
    each(bytes, out, [&](std::size_t i, bool) { out[i] = 0; });
  }

 private:
  template <class F>
  void each(std::span<const std::byte> bytes, std::span<float> out, const F& f) const {
    invariant(out.size() == numbers_, "a codec decodes the run that it was made for");
    BytesIn in(bytes);
    read_sparse<0>(in, numbers_, [&](std::size_t i, bool negative, const std::byte*) { f(i, negative); });
    in.done();
  }
  std::size_t numbers_;
  float threshold_;
  std::array<std::uint32_t, 4096> places_;
};

}  // namespace

CodecMaker strom(OptionReader& options) {
  const auto threshold = static_cast<float>(options.number("threshold", 3, 1e-30, 1e30));
  return [=](const std::vector<CodecPiece>& pieces) { return std::make_unique<Strom>(numbers_of(pieces), threshold); };
}

}  // namespace echelon::codecs
