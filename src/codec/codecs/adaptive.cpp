// Adaptive threshold (Dryden et al. 2016): of the numbers above zero the largest share, and the same share of those
// below zero; each is received as the mean of those that were sent on its side. The thresholds follow from the numbers,
// every time. Meant with error feedback. Bytes: the two means (below, above), then sparse.h without values, the flag is
// the sign: 2 bytes a number that is sent. Where numbers are compared in units of each layer's root mean square
// (layer_scale), that of every piece (float32) comes first: the same as layer_scale.cpp around it would say, in fewer
// passes over the numbers.
//
// To pass over the numbers once, a small part of them is looked at first: it tells limits that a few more than the
// share will exceed. If it has misled, another pass has no limits.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "codec/codecs.h"
#include "codec/kernels/both_sides.h"
#include "codec/kernels/layer_size.h"
#include "codec/kernels/select.h"
#include "codec/piecewise.h"
#include "codec/wire/sparse.h"

namespace echelon::codecs {

namespace {

constexpr std::size_t means_bytes = 2 * sizeof(float);
constexpr std::size_t sample_every = 1024, sample_run = 16, least_sample = 1024;
constexpr std::size_t ahead = 16;  // numbers that lie far apart are called for so many before they are needed

class Adaptive : public Codec {
 public:
  Adaptive(const std::vector<CodecPiece>& pieces, double share, bool scaled)
      : share_(share), scaled_(scaled), parts_(scaled ? parts_of(pieces, 0) : one_part(pieces)) {
    for (const std::size_t part : parts_) {
      numbers_ += part;
      sample_.resize(sample_.size() + (part + sample_every - 1) / sample_every * sample_run);
    }
    scales_.resize(parts_.size(), 1.0f);
    // Most of it is never touched.
    places_ = std::make_unique_for_overwrite<std::uint32_t[]>(numbers_);
    found_ = std::make_unique_for_overwrite<float[]>(numbers_);
  }
  Traits traits() const override { return {.sparse = true}; }
  std::size_t most_bytes() const override {  // every side rounds up
    return header() + sparse_bytes(numbers_, std::min(numbers_, of(numbers_) + 2), 0);
  }
  double usual_bytes() const override {
    return static_cast<double>(header() + sparse_bytes(numbers_, of(numbers_), 0));
  }

  std::size_t encode(std::span<const float> values, const CodecStep&, std::span<std::byte> out) override {
    choose_scales([&](std::size_t begin, std::size_t size) { return layer_size(values.subspan(begin, size)); });
    return write(values, out, [](std::size_t, float) {});
  }
  std::size_t encode_rest(std::span<float> values, const CodecStep&, std::span<std::byte> out) override {
    choose_scales([&](std::size_t begin, std::size_t size) { return layer_size(values.subspan(begin, size)); });
    return write(values, out, [&](std::size_t i, float sent) { values[i] -= sent; });
  }
  std::size_t encode_sum(std::span<float> values, std::span<const float> more, const CodecStep& step,
                         std::span<std::byte> out) override {
    if (!scaled_) return Codec::encode_sum(values, more, step, out);
    invariant(values.size() == more.size(), "sums are of as many numbers");
    choose_scales([&](std::size_t begin, std::size_t size) {
      return add_and_size(values.subspan(begin, size), more.data() + begin);
    });
    return write(values, out, [&](std::size_t i, float sent) { values[i] -= sent; });
  }
  void add(std::span<const std::byte> bytes, float scale, std::span<float> out) const override {
    invariant(out.size() == numbers_, "a codec decodes the run that it was made for");
    float* to = out.data();
    each(bytes, [&](std::size_t i, float value) { to[i] += scale * value; });
  }
  void each_sent(std::span<const std::byte> bytes, const Sent& f) const override { each(bytes, f); }

 private:
  std::size_t of(std::size_t count) const {
    return static_cast<std::size_t>(std::ceil(share_ * static_cast<double>(count)));
  }
  std::size_t scales_bytes() const { return scaled_ ? parts_.size() * sizeof(float) : 0; }
  std::size_t header() const { return scales_bytes() + means_bytes; }

  // By measure(first number of a part, how many they are).
  template <class Measure>
  void choose_scales(const Measure& measure) {
    std::size_t begin = 0;
    for (std::size_t k = 0; scaled_ && k < parts_.size(); begin += parts_[k++]) {
      const float size = measure(begin, parts_[k]);
      scales_[k] = size == 0 ? 1 : size;
    }
  }

  // f(part, its first number), of all.
  template <class F>
  void each_part(const F& f) const {
    std::size_t begin = 0;
    for (std::size_t k = 0; k < parts_.size(); begin += parts_[k++]) f(k, begin);
  }

  // order_bits that a few more than the share of the numbers on a side will reach.
  std::uint32_t limit(std::span<const float> sample, Side side) {
    if (sample.size() < least_sample) return 1;
    const auto on_side = std::ranges::count_if(sample, [&](float v) { return order_bits(v, side) > 0; });
    const double expected = share_ * static_cast<double>(on_side);
    const auto rank = static_cast<std::size_t>(expected + 4 * std::sqrt(expected) + 8);
    return std::max(1u, selector_.largest(sample, rank, side).bits);
  }
  std::span<const float> sample(std::span<const float> values) {
    std::size_t count = 0;
    each_part([&](std::size_t k, std::size_t begin) {
      const float factor = 1 / scales_[k];
      for (std::size_t i = 0; i + sample_run <= parts_[k]; i += sample_every) {
        const float* from = values.data() + begin + i;
        if (i + ahead * sample_every < parts_[k]) __builtin_prefetch(from + ahead * sample_every);
        for (std::size_t j = 0; j < sample_run; ++j) sample_[count + j] = from[j] * factor;
        count += sample_run;
      }
    });
    return std::span(sample_).first(count);
  }

  // The numbers that reach these limits, in units of their scales.
  std::span<float> find(std::span<const float> values, std::uint32_t above, std::uint32_t below, Sides& all) {
    std::size_t count = 0;
    all = {};
    each_part([&](std::size_t k, std::size_t begin) {
      count += far_from_zero(values.subspan(begin, parts_[k]), 1 / scales_[k], above, below,
                             static_cast<std::uint32_t>(begin), places_.get() + count, found_.get() + count, all);
    });
    return {found_.get(), count};
  }

  // Those of the numbers found that are within the limits of their sides, with their places. Whether one is, nobody can
  // foresee: so no branch asks.
  std::span<const float> keep(std::span<float> found, std::array<Largest, 2> limits) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const float x = found[i];
      const bool minus = std::signbit(x);
      const std::uint32_t bits = order_bits(x, Side::both), limit = minus ? limits[1].bits : limits[0].bits;
      bool stays = bits > limit;
      if (bits == limit && limits[minus].ties > 0) {
        --limits[minus].ties;
        stays = true;
      }
      found[kept] = x;
      places_[kept] = places_[i];
      kept += stays;
    }
    return found.first(kept);
  }

  // taken(place, what is sent of it) of every number that is sent.
  template <class Taken>
  std::size_t write(std::span<const float> values, std::span<std::byte> out, const Taken& taken) {
    invariant(values.size() == numbers_ && out.size() >= most_bytes(), "a codec encodes the run that it was made for");
    const auto some = sample(values);
    Sides all;
    auto found = find(values, limit(some, Side::positive), limit(some, Side::negative), all);
    const auto below = static_cast<std::size_t>(std::ranges::count_if(found, [](float x) { return std::signbit(x); }));
    if (below < of(all.below) || found.size() - below < of(all.above)) found = find(values, 1, 1, all);
    const std::array<Largest, 2> limits{selector_.largest(found, of(all.above), Side::positive),
                                        selector_.largest(found, of(all.below), Side::negative)};
    const auto sent = keep(found, limits);
    double sums[2] = {};
    std::size_t counts[2] = {};
    for (const float x : sent) {
      const bool minus = std::signbit(x);
      sums[0] += minus ? 0.0 : static_cast<double>(x);
      sums[1] += minus ? static_cast<double>(x) : 0.0;
      counts[minus] += 1;
    }
    float means[2];
    for (const std::size_t side : {0, 1})
      means[side] = counts[side] == 0 ? 0 : static_cast<float>(sums[side] / static_cast<double>(counts[side]));
    if (scaled_) std::memcpy(out.data(), scales_.data(), scales_bytes());
    put(out.data() + scales_bytes(), means[1]);
    put(out.data() + scales_bytes() + sizeof(float), means[0]);
    SparseWriter writer(out.data() + header(), numbers_);
    std::size_t part = 0, end = parts_.empty() ? 0 : parts_[0];
    for (std::size_t i = 0; i < sent.size(); ++i) {
      const std::size_t place = places_[i];
      if (i + ahead < sent.size()) __builtin_prefetch(values.data() + places_[i + ahead], 1);
      const bool minus = std::signbit(sent[i]);
      while (place >= end) end += parts_[++part];
      writer.entry<0>(place, minus, nullptr);
      taken(place, means[minus] * scales_[part]);
    }
    return header() + writer.finish();
  }

  template <class F>
  void each(std::span<const std::byte> bytes, const F& f) const {
    BytesIn in(bytes);
    const auto scales = in.take(scales_bytes());
    const auto below = in.take<float>(), above = in.take<float>();
    std::size_t part = 0, end = 0;
    float means[2] = {};
    const auto enter = [&](std::size_t k) {
      const float scale = scaled_ ? get<float>(scales.data() + k * sizeof(float)) : 1;
      means[0] = above * scale, means[1] = below * scale;
      end += parts_[k];
    };
    if (!parts_.empty()) enter(0);
    read_sparse<0>(in, numbers_, [&](std::size_t i, bool minus, const std::byte*) {
      while (i >= end) enter(++part);
      f(i, means[minus]);
    });
    in.done();
  }

  double share_;
  bool scaled_;
  std::vector<std::size_t> parts_;
  std::size_t numbers_ = 0;
  std::vector<float> scales_, sample_;
  Selector selector_{0, 0};
  std::unique_ptr<std::uint32_t[]> places_;  // of the numbers in found_
  std::unique_ptr<float[]> found_;
};

CodecMaker make_adaptive(OptionReader& options) {
  const double share = options.number("share", 0.01, 1e-7, 1);
  const bool scaled = options.text("layer_scale", "every_call") == "every_call";
  return [=](const std::vector<CodecPiece>& pieces) { return std::make_unique<Adaptive>(pieces, share, scaled); };
}

}  // namespace

CodecPart adaptive() {
  return codec_part({"adaptive",
                     "the largest positive and negative shares, as their means",
                     {{"share", "0.01", "of the numbers that is sent"}}},
                    make_adaptive, {.error_feedback = true, .layer_scale = "every_call", .scales_itself = true});
}

}  // namespace echelon::codecs
