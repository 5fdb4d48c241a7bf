#include "data/formats/shards.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/error.h"
#include "data/array.h"
#include "data/class_counter.h"
#include "data/files/fingerprint.h"
#include "data/formats/npy.h"
#include "data/formats/tar.h"

namespace echelon::data {

namespace {

enum class InputKind { none, picture, array, text };

struct Entry {
  std::uint32_t shard = 0;
  InputKind kind = InputKind::none;
  std::int32_t label = -1;
  std::uint64_t offset = 0, size = 0;  // of the input
};

constexpr std::uint64_t largest_member = 256 << 20;

class ShardDataset : public Dataset {
 public:
  ShardDataset(DatasetInfo info, std::vector<SourcePtr> shards, std::vector<Entry> entries, const ShardOptions& options)
      : Dataset(std::move(info)), shards_(std::move(shards)), entries_(std::move(entries)), options_(options) {}

  void get(std::uint64_t index, const SampleContext&, SampleRef out) const override {
    const Entry& e = entries_[index];
    const Source& shard = *shards_[e.shard];
    Scratch copy;
    const std::byte* bytes = shard.at(e.offset, e.size);
    if (!bytes) {
      copy.resize(e.size);
      shard.read(e.offset, copy.bytes());
      bytes = copy.data();
    }
    if (e.kind == InputKind::picture) {
      Scratch pixels;
      const ImageExtent from = decode_image({bytes, e.size}, shard.name(), options_.image.channels, pixels);
      resize_image(pixels.bytes(), from, options_.image.channels, *options_.image.extent, options_.image.fit,
                   reinterpret_cast<float*>(out[0]));
    } else if (e.kind == InputKind::array) {
      const Array array = member_array(shards_[e.shard], e);
      if (array_shape(array) != fields()[0].shape)
        corrupt(shard, e.offset, fmt::format("an array {}, like the first sample's", to_string(fields()[0].shape)),
                to_string(array_shape(array)));
      array.read_f32(array.offset, fields()[0].shape.elements(), reinterpret_cast<float*>(out[0]));
    } else {
      auto* const tokens = reinterpret_cast<std::int32_t*>(out[0]);
      for (std::int64_t i = 0; i < options_.length; ++i)
        tokens[i] = i < static_cast<std::int64_t>(e.size) ? static_cast<std::int32_t>(bytes[i]) : 0;
    }
    if (out.size() > 1) *reinterpret_cast<std::int32_t*>(out[1]) = e.label;
  }

  static Array member_array(const SourcePtr& shard, const Entry& e) {
    return read_npy(part_of(shard, e.offset, e.size, shard->name()));
  }
  // An array file's first dimension is not a count here: it belongs to the sample.
  static Shape array_shape(const Array& array) {
    std::vector<std::int64_t> dims{static_cast<std::int64_t>(array.count)};
    dims.insert(dims.end(), array.sample.dims().begin(), array.sample.dims().end());
    return Shape(dims);
  }

 private:
  std::vector<SourcePtr> shards_;
  std::vector<Entry> entries_;
  ShardOptions options_;
};

std::int32_t read_class(const Source& tar, const TarMember& member) {
  if (member.size > 32)
    corrupt(tar, member.offset, "a class: a whole number as text", fmt::format("{} bytes", member.size));
  std::string text = Reader(tar, member.offset).text(member.size, "a class");
  while (!text.empty() && std::strchr(" \r\n\t", text.back())) text.pop_back();
  std::int32_t label = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), label);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || label < 0)
    corrupt(tar, member.offset, fmt::format("a class in '{}': a whole number from 0 on", member.name),
            fmt::format("'{}'", text));
  return label;
}

InputKind kind_of(std::string_view name) {
  return is_picture(name)         ? InputKind::picture
         : name.ends_with(".npy") ? InputKind::array
         : name.ends_with(".txt") ? InputKind::text
                                  : InputKind::none;
}

// Groups the members of one archive into samples.
void index_shard(const Source& tar, std::uint32_t number, std::vector<Entry>& entries, Fingerprint& print) {
  std::string key;
  Entry current;
  const auto finish = [&] {
    if (current.kind != InputKind::none || current.label >= 0) {
      if (current.kind == InputKind::none)
        corrupt(tar, current.offset, fmt::format("a .png, .jpg, .npy or .txt for '{}'", key), "none");
      entries.push_back(current);
    }
    current = {.shard = number};
  };
  read_tar(tar, [&](const TarMember& m) {
    const std::size_t slash = m.name.rfind('/'), base = slash == std::string::npos ? 0 : slash + 1;
    const std::size_t dot = m.name.find('.', base);
    if (dot == std::string::npos || dot == base) return;  // no kind, or a hidden file
    if (m.name.compare(0, dot, key) != 0 || key.size() != dot) {
      finish();
      key = m.name.substr(0, dot);
    }
    const InputKind kind = kind_of(m.name);
    if (kind != InputKind::none) {
      if (current.kind != InputKind::none) corrupt(tar, m.offset, fmt::format("one input for '{}'", key), "a second");
      if (m.size > largest_member)
        corrupt(tar, m.offset, "a sample of at most 256 MiB", fmt::format("{} bytes", m.size));
      current.kind = kind, current.offset = m.offset, current.size = m.size, current.shard = number;
    } else if (m.name.ends_with(".cls")) {
      if (current.label >= 0) corrupt(tar, m.offset, fmt::format("one class for '{}'", key), "a second");
      current.label = read_class(tar, m);
    }
    print.add(m.name).add(m.size);
  });
  finish();
}

std::vector<std::string> archives(Disk& disk, const std::string& path, const std::string& split) {
  if (!disk.is_directory(path)) return {path};
  std::vector<std::string> all, of_split;
  for (const auto& name : disk.list(path)) {
    if (!name.ends_with(".tar")) continue;
    all.push_back(path + "/" + name);
    if (name.starts_with(split)) of_split.push_back(all.back());
  }
  if (all.empty()) bad_input("{}: no .tar archive in it", path);
  return of_split.empty() ? all : of_split;
}

Field shard_input(const std::vector<SourcePtr>& shards, const Entry& first, ShardOptions& options) {
  if (first.kind == InputKind::picture) {
    auto& image = options.image;
    if (!image.extent) {
      Scratch file(first.size), pixels;
      shards[first.shard]->read(first.offset, file.bytes());
      image.extent = decode_image(file.bytes(), shards[first.shard]->name(), image.channels, pixels);
    }
    return {"image", DType::f32, Shape{image.channels, image.extent->height, image.extent->width}};
  }
  if (first.kind == InputKind::array) {
    const Shape shape = ShardDataset::array_shape(ShardDataset::member_array(shards[first.shard], first));
    return {shape.rank() == 3 ? "image" : "features", DType::f32, shape};
  }
  if (options.length < 1)
    bad_input("{}: the samples are texts: say how long one is (length)", shards[first.shard]->name());
  return {"tokens", DType::i32, Shape{options.length}};
}

}  // namespace

bool has_shards_of(Disk& disk, const std::string& path, const std::string& split) {
  return disk.is_directory(path) && std::ranges::any_of(disk.list(path), [&](const std::string& name) {
           return name.starts_with(split) && name.ends_with(".tar");
         });
}

std::shared_ptr<const Dataset> open_shards(Disk& disk, const std::string& path, const std::string& split,
                                           const ShardOptions& options) {
  std::vector<SourcePtr> shards;
  std::vector<Entry> entries;
  Fingerprint print;
  std::uint64_t memory = 256 << 20;  // so much is held in memory; archives beyond it are read from the disk
  for (const auto& file : archives(disk, path, split)) {
    shards.push_back(open_source(disk, file, memory));
    if (shards.back()->in_memory()) memory -= std::min(memory, shards.back()->size());
    index_shard(*shards.back(), static_cast<std::uint32_t>(shards.size() - 1), entries, print);
  }
  if (entries.empty()) bad_input("{}: no sample in it: expected members such as 0001.png and 0001.cls", path);
  ShardOptions resolved = options;
  if (entries.front().kind == InputKind::picture && !resolved.image.extent && split != "train" &&
      has_shards_of(disk, path, "train")) {
    const Shape train = open_shards(disk, path, "train", options)->fields()[0].shape;
    if (train.rank() == 3) resolved.image.extent = ImageExtent{train[1], train[2]};
  }
  DatasetInfo info;
  info.fields.push_back(shard_input(shards, entries.front(), resolved));
  const bool labelled = entries.front().label >= 0;
  ClassCounter counter;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Entry& e = entries[i];
    if (e.kind != entries.front().kind || (e.label >= 0) != labelled)
      corrupt(*shards[e.shard], e.offset, "the same kinds of members as in the first sample",
              fmt::format("others in sample {}", i));
    if (labelled) counter.add(e.label, i), print.add(static_cast<std::uint64_t>(e.label));
  }
  if (labelled && options.classes > 0)
    for (std::size_t i = 0; i < entries.size(); ++i)
      if (entries[i].label >= options.classes)
        corrupt(*shards[entries[i].shard], entries[i].offset, fmt::format("a class from 0 to {}", options.classes - 1),
                fmt::format("{} (sample {})", entries[i].label, i));
  if (labelled) info.classes = options.classes > 0 ? options.classes : counter.classes(path);
  if (labelled) info.fields.push_back({"label", DType::i32, Shape{}});
  info.size = entries.size();
  for (const SourcePtr& shard : shards) print.add(fingerprint_of(*shard));  // last: it reads all of it
  info.fingerprint = print.add(to_string(info.fields[0])).hex();
  return std::make_shared<ShardDataset>(std::move(info), std::move(shards), std::move(entries), resolved);
}

}  // namespace echelon::data
