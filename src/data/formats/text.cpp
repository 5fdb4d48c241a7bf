#include "data/formats/text.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "data/array.h"
#include "data/files/fingerprint.h"

namespace echelon::data {

namespace {

using Windows = TextOptions::Windows;

class TextDataset : public Dataset {
 public:
  TextDataset(DatasetInfo info, Array tokens, std::uint64_t first, std::uint64_t count, const TextOptions& options)
      : Dataset(std::move(info)),
        tokens_(std::move(tokens)),
        first_(first),
        count_(count),
        length_(static_cast<std::uint64_t>(options.length)),
        windows_(options.windows) {}

  void get(std::uint64_t index, const SampleContext& context, SampleRef out) const override {
    const std::uint64_t at = tokens_.place(first_ + start(index, context));
    tokens_.read_i32(at, static_cast<std::int64_t>(length_), reinterpret_cast<std::int32_t*>(out[0]));
    tokens_.read_i32(at + tokens_.stride, static_cast<std::int64_t>(length_), reinterpret_cast<std::int32_t*>(out[1]));
  }

 private:
  std::uint64_t start(std::uint64_t index, const SampleContext& context) const {
    if (windows_ == Windows::tiled) return index * length_;
    if (windows_ == Windows::streams) {
      const auto streams = static_cast<std::uint64_t>(info().streams);
      const std::uint64_t window = index / streams, stream = index % streams;
      return stream * (size() / streams * length_) + window * length_;
    }
    const Stream random({.seed = context.seed,
                         .step = context.epoch,
                         .shard = static_cast<std::uint32_t>(index),
                         .layer = stream_layer("data.text") + static_cast<std::uint32_t>(index >> 32)});
    const std::uint64_t wide = static_cast<std::uint64_t>(random.bits(0)) << 32 | random.bits(1);
    const std::uint64_t places = count_ - length_;  // a window needs one token more, as its last target
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(wide) * places >> 64);
  }

  Array tokens_;
  std::uint64_t first_, count_, length_;
  Windows windows_;
};

}  // namespace

Vocabulary make_vocabulary(std::string_view text, std::string_view name, const TextOptions& options) {
  using Level = TextOptions::Level;
  if (options.level == Level::byte) return Vocabulary::bytes();
  if (options.level == Level::character) return Vocabulary::characters(text, name);
  const auto seen = static_cast<std::size_t>((options.train_fraction - options.validation_fraction) *
                                             static_cast<double>(text.size()));
  const std::string_view trains = text.substr(0, seen);
  const auto tokens = static_cast<std::size_t>(options.tokens);
  return options.level == Level::bpe ? Vocabulary::byte_pairs(BytePairs::train(trains, tokens))
                                     : Vocabulary::words(Words::train(trains, tokens));
}

std::shared_ptr<const Dataset> read_text_dataset(const SourcePtr& source, const std::string& split,
                                                 const TextOptions& options) {
  if (options.length < 1) bad_input("a window of text has at least one token, not {}", options.length);
  if (!(options.train_fraction > 0 && options.train_fraction <= 1))
    bad_input("the part of the text that trains lies above 0 and at most at 1, not {}", options.train_fraction);
  // Bytes are read where they lie; characters are turned into tokens once.
  Array tokens{source, Element::u8, false, source->size(), Shape{}, 0, 1};
  auto vocabulary = options.vocabulary;
  if (options.level == TextOptions::Level::byte) {
    if (!vocabulary) vocabulary = std::make_shared<Vocabulary>(Vocabulary::bytes());
  } else {
    const std::byte* bytes = source->at(0, source->size());
    if (!bytes)
      bad_input("{}: {} MiB are too much to be cut into tokens: use level = \"byte\"", source->name(),
                source->size() >> 20);
    const std::string_view text(reinterpret_cast<const char*>(bytes), source->size());
    if (!vocabulary) vocabulary = std::make_shared<Vocabulary>(make_vocabulary(text, source->name(), options));
    auto packed = vocabulary->encode_packed(text, source->name());
    const std::size_t width = vocabulary->packed_width();
    tokens.element = width == 1 ? Element::u8 : width == 2 ? Element::u16 : Element::u32;
    tokens.count = packed.size() / width;
    tokens.stride = width;
    tokens.source = memory_source(source->name(), std::move(packed));
  }
  const auto until = [&](double share) {
    return static_cast<std::uint64_t>(std::floor(std::max(0.0, share) * static_cast<double>(tokens.count)));
  };
  const std::uint64_t test = until(options.train_fraction),
                      train = options.validation_fraction > 0
                                  ? until(options.train_fraction - options.validation_fraction)
                                  : test;
  const std::uint64_t first = split == "train"        ? 0
                              : split == "validation" ? train
                                                      : test,
                      last = split == "train"        ? train
                             : split == "validation" ? test
                                                     : tokens.count,
                      count = last - first;
  const auto length = static_cast<std::uint64_t>(options.length);
  const auto streams = static_cast<std::uint64_t>(options.windows == Windows::streams ? options.streams : 1);
  if (streams < 1) bad_input("a text is read as at least one stream");
  const std::uint64_t tiles = count == 0 ? 0 : (count - 1) / length;
  if (tiles < streams)
    bad_input("{}: the split '{}' has {} tokens: too few for {} window(s) of {}", source->name(), split, count, streams,
              length);
  DatasetInfo info;
  info.size = options.windows == Windows::random && options.samples > 0 ? static_cast<std::uint64_t>(options.samples)
                                                                        : tiles / streams * streams;
  info.fields = {{"tokens", DType::i32, Shape{options.length}}, {"targets", DType::i32, Shape{options.length}}};
  info.classes = static_cast<std::int64_t>(vocabulary->size());
  info.vocabulary = vocabulary;
  info.streams = options.windows == Windows::streams ? options.streams : 0;
  info.random = options.windows == Windows::random;
  info.fingerprint = Fingerprint().add(fingerprint_of(*source)).add(vocabulary->to_text()).add(first).add(count).hex();
  return std::make_shared<TextDataset>(std::move(info), std::move(tokens), first, count, options);
}

}  // namespace echelon::data
