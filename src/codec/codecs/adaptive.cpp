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
  Adaptive(std::size_t numbers, double share)
      : numbers_(numbers), share_(share), positive_(numbers, expected()), negative_(numbers, expected()) {}
  Traits traits() const override { return {.sparse = true}; }
  std::size_t most_bytes() const override {  // every side rounds up
    return header + sparse_bytes(numbers_, std::min(numbers_, expected() + 2), 0);
  }
  double usual_bytes() const override { return static_cast<double>(header + sparse_bytes(numbers_, expected(), 0)); }

  std::size_t encode(std::span<const float> values, const CodecStep&, std::span<std::byte> out) override {
    invariant(values.size() == numbers_ && out.size() >= most_bytes(), "a codec encodes the run that it was made for");
    positive_.expect(values, share_, Side::positive);
    negative_.expect(values, share_, Side::negative);
    std::size_t above = 0, below = 0;
    for (std::size_t i = 0; i < numbers_; i += 4096) {  // in pieces for the nearest cache
      const auto some = values.subspan(i, std::min<std::size_t>(4096, numbers_ - i));
      std::uint32_t more = 0, less = 0;
      for (const float x : some) more += x > 0, less += x < 0;
      above += more, below += less;
      positive_.look(some, i);
      negative_.look(some, i);
    }
    auto high = positive_.chosen(values, of(above));
    auto low = negative_.chosen(values, of(below));
    const std::size_t counts[2] = {high.size(), low.size()};
    double sums[2] = {};
    SparseWriter writer(out.data() + header, numbers_);
    while (!high.empty() || !low.empty()) {  // merged, in rising order
      const bool negative = high.empty() || (!low.empty() && low.front() < high.front());
      auto& side = negative ? low : high;
      writer.entry<0>(side.front(), negative, nullptr);
      side = side.subspan(1);
    }
    for (const float x : positive_.numbers()) sums[0] += static_cast<double>(x);
    for (const float x : negative_.numbers()) sums[1] += static_cast<double>(x);
    for (const int side : {0, 1})
      put(out.data() + (side == 1 ? 0 : sizeof(float)),
          counts[side] == 0 ? 0.0f : static_cast<float>(sums[side] / static_cast<double>(counts[side])));
    return header + writer.finish();
  }
  void add(std::span<const std::byte> bytes, float scale, std::span<float> out) const override {
    invariant(out.size() == numbers_, "a codec decodes the run that it was made for");
    each(bytes, [&](std::size_t i, float mean) { out[i] += scale * mean; });
  }
  void each_sent(std::span<const std::byte> bytes, const Sent& f) const override { each(bytes, f); }

 private:
  std::size_t of(std::size_t count) const {
    return static_cast<std::size_t>(std::ceil(share_ * static_cast<double>(count)));
  }
  std::size_t expected() const { return of(numbers_); }

  template <class F>
  void each(std::span<const std::byte> bytes, const F& f) const {
    BytesIn in(bytes);
    const auto below = in.take<float>(), above = in.take<float>();
    read_sparse<0>(in, numbers_,
                   [&](std::size_t i, bool negative, const std::byte*) { f(i, negative ? below : above); });
    in.done();
  }
  std::size_t numbers_;
  double share_;
  Selector positive_, negative_;
};

}  // namespace

CodecMaker adaptive(OptionReader& options) {
  const double share = options.number("share", 0.01, 1e-7, 1);
  return [=](const std::vector<CodecPiece>& pieces) { return std::make_unique<Adaptive>(numbers_of(pieces), share); };
}

}  // namespace echelon::codecs
