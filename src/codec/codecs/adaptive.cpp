// Adaptive threshold (Dryden et al. 2016): of the numbers above zero the largest share, and the same share of those
// below zero; each is received as the mean of those that were sent on its side. The thresholds follow from the numbers,
// every time. Meant with error feedback. Bytes: the two means (below, above), then sparse.h without values, the flag is
// the sign: 2 bytes a number that is sent.

#include <algorithm>
#include <cmath>

#include "codec/codecs.h"
#include "codec/select.h"
#include "codec/sparse.h"

namespace echelon::codecs {

namespace {

constexpr std::size_t header = 2 * sizeof(float);

class Adaptive : public Codec {
 public:
  Adaptive(std::size_t numbers, double share) : numbers_(numbers), share_(share) {}
  Traits traits() const override { return {.sparse = true}; }
  std::size_t most_bytes() const override {  // every side rounds up
    return header + sparse_bytes(numbers_, std::min(numbers_, expected() + 2), 0);
  }
  double usual_bytes() const override { return static_cast<double>(header + sparse_bytes(numbers_, expected(), 0)); }

  std::size_t encode(std::span<const float> values, const CodecStep&, std::span<std::byte> out) override {
    invariant(values.size() == numbers_ && out.size() >= most_bytes(), "a codec encodes the run that it was made for");
    std::size_t above = 0, below = 0;
    for (const float x : values) above += x > 0, below += x < 0;
    Largest high = selector_.largest(values, of(above), Side::positive);
    Largest low = selector_.largest(values, of(below), Side::negative);
    SparseWriter writer(out.data() + header, numbers_);
    double sums[2] = {};
    std::size_t counts[2] = {};
    for (std::size_t begin = 0; begin < numbers_; begin += most_positions) {
      const auto x = values.subspan(begin, std::min(most_positions, numbers_ - begin));
      const std::size_t found =
          positions_at_least(x, Side::both, std::max(1u, std::min(high.bits, low.bits)), places_.data());
      for (std::size_t k = 0; k < found; ++k) {
        const float value = x[places_[k]];
        const bool negative = std::signbit(value);
        Largest& limit = negative ? low : high;
        const std::uint32_t bits = order_bits(value, Side::both);
        if (bits < limit.bits || (bits == limit.bits && limit.ties == 0)) continue;
        if (bits == limit.bits) --limit.ties;
        writer.entry<0>(begin + places_[k], negative, nullptr);
        sums[negative] += static_cast<double>(value);
        ++counts[negative];
      }
    }
    for (const int side : {0, 1})
      put(out.data() + (side == 1 ? 0 : sizeof(float)),
          counts[side] == 0 ? 0.0f : static_cast<float>(sums[side] / static_cast<double>(counts[side])));
    return header + writer.finish();
  }
  void add(std::span<const std::byte> bytes, float scale, std::span<float> out) const override {
    each(bytes, out, [&](std::size_t i, float mean) { out[i] += scale * mean; });
  }
  void clear_sent(std::span<const std::byte> bytes, std::span<float> out) const override {
    each(bytes, out, [&](std::size_t i, float) { out[i] = 0; });
  }

 private:
  std::size_t of(std::size_t count) const {
    return static_cast<std::size_t>(std::ceil(share_ * static_cast<double>(count)));
  }
  std::size_t expected() const { return of(numbers_); }

  template <class F>
  void each(std::span<const std::byte> bytes, std::span<float> out, const F& f) const {
    invariant(out.size() == numbers_, "a codec decodes the run that it was made for");
    BytesIn in(bytes);
    const auto below = in.take<float>(), above = in.take<float>();
    read_sparse<0>(in, numbers_,
                   [&](std::size_t i, bool negative, const std::byte*) { f(i, negative ? below : above); });
    in.done();
  }
  std::size_t numbers_;
  double share_;
  Selector selector_;
  std::array<std::uint16_t, most_positions> places_;
};

}  // namespace

CodecMaker adaptive(OptionReader& options) {
  const double share = options.number("share", 0.01, 1e-7, 1);
  return [=](const std::vector<CodecPiece>& pieces) { return std::make_unique<Adaptive>(numbers_of(pieces), share); };
}

}  // namespace echelon::codecs
