#include "data/formats/synthetic.h"

#include <algorithm>

#include "base/error.h"
#include "base/random.h"
#include "data/files/fingerprint.h"
#include "data/normals.h"

namespace echelon::data {

namespace {

using SyntheticKind = SyntheticOptions::Kind;
constexpr std::uint64_t most_numbers = 1ull << 26;  // of a sample, and of all classes' centres: 256 MiB

class Synthetic : public Dataset {
 public:
  Synthetic(DatasetInfo info, const SyntheticOptions& options, std::uint32_t split)
      : Dataset(std::move(info)), options_(options), split_(split) {
    if (options.kind == SyntheticKind::tokens || options.kind == SyntheticKind::lists) return;
    const auto n = static_cast<std::uint64_t>(options.shape.elements());
    centres_.resize(static_cast<std::size_t>(options.classes) * n);
    for (std::size_t c = 0; c < static_cast<std::size_t>(options.classes); ++c) {
      const Stream stream(
          {.seed = options.seed, .shard = static_cast<std::uint32_t>(c), .layer = stream_layer("data.centre")});
      if (options.kind == SyntheticKind::blobs)
        fill_normals(stream, std::span(centres_).subspan(c * n, n));
      else
        for (std::uint64_t i = 0; i < n; ++i) centres_[c * n + i] = stream.uniform(i);
    }
  }

  void get(std::uint64_t index, const SampleContext&, SampleRef out) const override {
    const Stream stream({.seed = options_.seed,
                         .step = split_,
                         .shard = static_cast<std::uint32_t>(index),
                         .layer = stream_layer("data.synthetic") + static_cast<std::uint32_t>(index >> 32)});
    if (options_.kind == SyntheticKind::tokens)
      walk(stream, reinterpret_cast<std::int32_t*>(out[0]), reinterpret_cast<std::int32_t*>(out[1]));
    else if (options_.kind == SyntheticKind::lists)
      list(stream, reinterpret_cast<float*>(out[0]), reinterpret_cast<std::int32_t*>(out[1]));
    else
      cloud(stream, index, reinterpret_cast<float*>(out[0]), reinterpret_cast<std::int32_t*>(out[1]));
  }

 private:
  // Classes take turns, so that every class is there in equal number.
  void cloud(const Stream& stream, std::uint64_t index, float* x, std::int32_t* label) const {
    const auto n = static_cast<std::uint64_t>(options_.shape.elements());
    const std::uint64_t c = index % static_cast<std::uint64_t>(options_.classes);
    const float* const centre = centres_.data() + c * n;
    const auto noise = static_cast<float>(options_.noise);
    if (options_.kind == SyntheticKind::blobs) {
      fill_normals(stream, {x, n});
      for (std::uint64_t i = 0; i < n; ++i) x[i] = centre[i] + noise * x[i];
    } else {
      for (std::uint64_t i = 0; i < n; i += 4) {  // one block of random bits gives four pixels
        const auto words = stream.block(static_cast<std::uint32_t>(i / 4));
        for (std::uint64_t j = 0; j < 4 && i + j < n; ++j) {
          const float u = static_cast<float>(words[j] >> 8) * 0x1p-24f;
          x[i + j] = centre[i + j] * (1 - noise) + u * noise;
        }
      }
    }
    *label = static_cast<std::int32_t>(c);
  }

  void list(const Stream& stream, float* x, std::int32_t* label) const {
    const std::int64_t rows = options_.shape[0], features = options_.shape[1];
    const auto digits = static_cast<std::uint32_t>(options_.classes);
    const auto length = 1 + static_cast<std::int64_t>(stream.below(static_cast<std::uint32_t>(rows - 1), 0));
    const std::uint32_t question = stream.below(3, 1);
    std::fill_n(x, rows * features, 0.0f);
    float* row = x + (rows - length - 1) * features;
    row[digits + question] = 1;
    std::uint32_t answer = 0;
    for (std::int64_t i = 0; i < length; ++i) {
      const std::uint32_t digit = stream.below(digits, static_cast<std::uint64_t>(2 + i));
      (row += features)[digit] = 1;
      if (question == 0 ? i == 0 : question == 1 || digit > answer) answer = digit;
    }
    *label = static_cast<std::int32_t>(answer);
  }

  void walk(const Stream& stream, std::int32_t* tokens, std::int32_t* targets) const {
    const auto vocabulary = static_cast<std::uint32_t>(options_.classes);
    std::uint32_t token = stream.below(vocabulary, 0);
    const std::int64_t length = options_.shape[0];
    for (std::int64_t t = 0; t < length; ++t) {
      tokens[t] = static_cast<std::int32_t>(token);
      const auto draw = static_cast<std::uint64_t>(1 + 2 * t);
      if (stream.uniform(draw) < options_.noise)
        token = stream.below(vocabulary, draw + 1);
      else  // the usual successor
        token = static_cast<std::uint32_t>((token * 2654435761ull + options_.seed * 40503u + 1) % vocabulary);
      targets[t] = static_cast<std::int32_t>(token);
    }
  }

  SyntheticOptions options_;
  std::uint32_t split_;
  std::vector<float> centres_;  // [classes, sample]
};

}  // namespace

std::shared_ptr<const Dataset> make_synthetic(const std::string& split, const SyntheticOptions& options) {
  std::uint64_t elements = 1;
  for (const auto d : options.shape.dims())
    if (d < 1 || (elements *= static_cast<std::uint64_t>(d)) > most_numbers)
      bad_input("a synthetic sample of shape {} is not possible: extents of at least 1, at most {} numbers",
                to_string(options.shape), most_numbers);
  if (options.samples < 1) bad_input("a synthetic data set has at least one sample");
  if (options.classes < 1 || static_cast<std::uint64_t>(options.classes) >
                                 most_numbers / (options.kind == SyntheticKind::tokens ? 1 : elements))
    bad_input("{} classes of shape {} are not possible", options.classes, to_string(options.shape));
  if (!(options.noise >= 0) || (options.kind != SyntheticKind::blobs && options.noise > 1))
    bad_input("the noise of synthetic data lies between 0 and 1, not {}", options.noise);
  if (options.kind == SyntheticKind::images && options.shape.rank() != 3)
    bad_input("a synthetic image has the shape [channels, height, width], not {}", to_string(options.shape));
  if (options.kind == SyntheticKind::tokens && options.shape.rank() != 1)
    bad_input("synthetic tokens have the shape [length], not {}", to_string(options.shape));
  if (options.kind == SyntheticKind::lists &&
      (options.shape.rank() != 2 || options.shape[0] < 2 || options.shape[1] != options.classes + 3))
    bad_input("synthetic lists have the shape [length, classes + 3], with a length of 2 or more: [{}, {}], not {}",
              options.shape.rank() == 2 ? std::max<std::int64_t>(2, options.shape[0]) : 10, options.classes + 3,
              to_string(options.shape));
  DatasetInfo info;
  info.size = options.samples;
  info.classes = options.classes;
  if (options.kind == SyntheticKind::tokens)
    info.fields = {{"tokens", DType::i32, options.shape}, {"targets", DType::i32, options.shape}};
  else
    info.fields = {{options.kind == SyntheticKind::images ? "image" : "features", DType::f32, options.shape},
                   {"label", DType::i32, Shape{}}};
  info.fingerprint = Fingerprint()
                         .add("synthetic")
                         .add(split)
                         .add(to_string(info.fields[0]))
                         .add(options.samples)
                         .add(static_cast<std::uint64_t>(options.classes))
                         .add(options.seed)
                         .add(fmt::format("{}", options.noise))
                         .hex();
  return std::make_shared<Synthetic>(std::move(info), options, split == "train" ? 0u : 1u);
}

}  // namespace echelon::data
