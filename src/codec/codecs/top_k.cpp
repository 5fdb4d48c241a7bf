// The largest numbers only (Aji, Heafield 2017): a share of them, by magnitude, in the whole run or in each parameter;
// exactly that many, whatever the numbers are (zeros are never sent). Meant with error feedback. With a warm-up the
// share falls from `warmup_share` to `share`, by the same factor every epoch (Lin et al. 2018 go from 25 % to 0.1 % in
// 4). With `hold` places are chosen anew only every so many calls: an exchange that knows them need not send them
// again. Bytes: sparse.h, with float32 or fp16 values.

#include <algorithm>
#include <cmath>

#include "codec/codecs.h"
#include "codec/kernels/half.h"
#include "codec/kernels/select.h"
#include "codec/piecewise.h"
#include "codec/wire/sparse.h"
#include "kernels/vector.h"

namespace echelon::codecs {

namespace {

struct TopKSettings {
  double share = 0.01, warmup_share = 0.25;
  double warmup_epochs = 0;
  std::int64_t hold = 1;
  bool layerwise = false;
  bool half = false;

  double share_at(double epoch) const {
    if (epoch >= warmup_epochs) return share;
    return warmup_share * std::pow(share / warmup_share, std::floor(std::max(epoch, 0.0)) / warmup_epochs);
  }
  double most_share() const { return warmup_epochs > 0 ? std::max(share, warmup_share) : share; }
};

std::size_t count_of(double share, std::size_t numbers) {
  const auto count = static_cast<std::size_t>(std::llround(share * static_cast<double>(numbers)));
  return std::clamp<std::size_t>(count, 1, numbers);
}

class TopK : public Codec {
 public:
  TopK(const std::vector<CodecPiece>& pieces, const TopKSettings& settings)
      : settings_(settings), parts_(settings.layerwise ? parts_of(pieces, 0) : one_part(pieces)) {
    std::erase(parts_, 0u);
    for (const std::size_t part : parts_) {
      numbers_ += part;
      largest_part_ = std::max(largest_part_, part);
      if (settings.hold > 1) held_.resize(held_.size() + count_of(settings.most_share(), part));
    }
    if (settings.hold > 1) held_counts_.resize(parts_.size());
    if (numbers_ > 0) selector_ = Selector(largest_part_, count_of(settings.most_share(), largest_part_));
  }
  Traits traits() const override { return {.sparse = true}; }
  std::size_t most_bytes() const override { return bytes_at(settings_.most_share()); }
  double usual_bytes() const override { return static_cast<double>(bytes_at(settings_.share)); }

  std::size_t encode(std::span<const float> values, const CodecStep& step, std::span<std::byte> out) override {
    return write(values, nullptr, step, out);
  }
  std::size_t encode_rest(std::span<float> values, const CodecStep& step, std::span<std::byte> out) override {
    return write(values, values.data(), step, out);
  }
  void add(std::span<const std::byte> bytes, float scale, std::span<float> out) const override {
    invariant(out.size() == numbers_, "a codec decodes the run that it was made for");
    each(bytes, [&](std::size_t i, float value) { out[i] += scale * value; });
  }
  void each_sent(std::span<const std::byte> bytes, const Sent& f) const override { each(bytes, f); }
  std::vector<State> state() override {
    if (settings_.hold == 1) return {};
    return {{"held", std::as_writable_bytes(std::span(held_))},
            {"held counts", std::as_writable_bytes(std::span(held_counts_))}};
  }

 private:
  std::size_t bytes_at(double share) const {
    std::size_t entries = 0;
    for (const std::size_t part : parts_) entries += count_of(share, part);
    return sparse_bytes(numbers_, entries, settings_.half ? 2 : 4);
  }

  template <class F>
  void each(std::span<const std::byte> bytes, const F& f) const {
    BytesIn in(bytes);
    if (settings_.half)
      read_sparse<2>(in, numbers_, [&](std::size_t i, bool, const std::byte* value) {
        f(i, ref_from_fp16(get<std::uint16_t>(value)));
      });
    else
      read_sparse<4>(in, numbers_, [&](std::size_t i, bool, const std::byte* value) { f(i, get<float>(value)); });
    in.done();
  }

  // Chosen now, or held since some calls ago.
  std::span<const std::uint32_t> places_in(std::span<const float> x, std::ptrdiff_t part, const CodecStep& step) {
    const std::size_t count = count_of(settings_.share_at(step.epoch), x.size());
    if (settings_.hold == 1) return selector_.places(x, count);
    const auto index = static_cast<std::size_t>(part);
    std::size_t begin = 0;
    for (std::size_t i = 0; i < index; ++i) begin += count_of(settings_.most_share(), parts_[i]);
    if (step.number % settings_.hold == 0) {
      const auto places = selector_.places(x, count);
      std::ranges::copy(places, held_.begin() + static_cast<std::ptrdiff_t>(begin));
      held_counts_[index] = static_cast<std::uint32_t>(places.size());
    }
    return std::span(held_).subspan(begin, held_counts_[index]);
  }

  // `rest`, if not null, is where the values can be written: what was sent is taken off.
  std::size_t write(std::span<const float> values, float* rest, const CodecStep& step, std::span<std::byte> out) {
    invariant(values.size() == numbers_ && out.size() >= most_bytes(), "a codec encodes the run that it was made for");
    SparseWriter writer(out.data(), numbers_);
    std::size_t begin = 0;
    for (const std::size_t& part : parts_) {
      const auto x = values.subspan(begin, part);
      const auto places = places_in(x, &part - parts_.data(), step);
      for (std::size_t i = 0; i < places.size(); i += some)
        write_some(x, begin, places.subspan(i, std::min(some, places.size() - i)), rest, writer);
      begin += part;
    }
    return writer.finish();
  }

  void write_some(std::span<const float> x, std::size_t begin, std::span<const std::uint32_t> places, float* rest,
                  SparseWriter& writer) {
    if (!settings_.half) {
      for (const std::uint32_t place : places) {
        writer.entry<4>(begin + place, false, &x[place]);
        if (rest) rest[begin + place] = 0;
      }
      return;
    }
    float sent[some];
    std::uint16_t halves[some];
    for (std::size_t k = 0; k < places.size(); ++k) sent[k] = x[places[k]];
    to_fp16(std::span(sent, places.size()), reinterpret_cast<std::byte*>(halves));
    for (std::size_t k = 0; k < places.size(); ++k) {
      writer.entry<2>(begin + places[k], false, &halves[k]);
      if (rest) rest[begin + places[k]] -= ref_from_fp16(halves[k]);
    }
  }

  static constexpr std::size_t some = 256;  // numbers that become fp16 together
  TopKSettings settings_;
  std::vector<std::size_t> parts_;
  std::size_t numbers_ = 0, largest_part_ = 0;
  Selector selector_{0, 0};
  std::vector<std::uint32_t> held_, held_counts_;  // with `hold`: places within each part, and how many of them
};

CodecMaker read_top_k(OptionReader& options, TopKSettings s) {
  s.share = options.number("share", s.share, 1e-7, 1);
  s.layerwise = options.flag("layerwise", s.layerwise);
  s.half = options.choice("values", "float32", {"float32", "fp16"}) == "fp16";
  s.warmup_epochs = options.number("warmup_epochs", s.warmup_epochs, 0, 1e6);
  s.hold = options.integer("hold", s.hold, 1, 1'000'000);
  s.warmup_share = options.number("warmup_share", s.warmup_share, 1e-7, 1);
  return [s](const std::vector<CodecPiece>& pieces) { return std::make_unique<TopK>(pieces, s); };
}

CodecMaker make_top_k(OptionReader& options) { return read_top_k(options, {}); }

CodecMaker make_dgc(OptionReader& options) {
  return read_top_k(options, {.share = 0.001, .warmup_epochs = 4, .layerwise = true});
}

}  // namespace

CodecPart dgc() {
  return codec_part({"dgc",
                     "top-k with momentum correction, clipping, factor masking and warm-up",
                     {{"share", "0.001", "of the numbers that is sent"},
                      {"layerwise", "true", "the share of each parameter, not of all together"},
                      {"values", "\"float32\"", "or fp16"},
                      {"warmup_epochs", "4", "over which the share falls to the final one"},
                      {"warmup_share", "0.25", "where it begins"},
                      {"hold", "1", "calls after which the places are chosen anew"}}},
                    make_dgc, {.momentum = 0.9});
}

CodecPart top_k() {
  return codec_part({"top_k",
                     "the largest numbers",
                     {{"share", "0.01", "of the numbers that is sent"},
                      {"layerwise", "false", "the share of each parameter, not of all together"},
                      {"values", "\"float32\"", "or fp16"},
                      {"warmup_epochs", "0", "over which the share falls to the final one"},
                      {"warmup_share", "0.25", "where it begins"},
                      {"hold", "1", "calls after which the places are chosen anew"}}},
                    make_top_k, {.error_feedback = true});
}

}  // namespace echelon::codecs
