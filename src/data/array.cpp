#include "data/array.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "data/class_counter.h"
#include "data/files/fingerprint.h"
#include "data/scratch.h"

namespace echelon::data {

namespace {

template <typename T>
T load(const std::byte* from, bool big_endian) {
  std::array<std::byte, sizeof(T)> raw;
  std::memcpy(raw.data(), from, sizeof(T));
  if (big_endian) std::ranges::reverse(raw);
  return std::bit_cast<T>(raw);
}

template <typename T>
void to_f32(const std::byte* from, bool big_endian, std::int64_t n, float* out, float scale) {
  if constexpr (std::is_same_v<T, std::uint8_t>) {  // the common case, in a form that compilers vectorise
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(from);
    for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(bytes[i]) * scale;
  } else if (std::is_same_v<T, float> && !big_endian && scale == 1.0f) {
    std::memcpy(out, from, static_cast<std::size_t>(n) * sizeof(float));
  } else {
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = static_cast<float>(load<T>(from + static_cast<std::size_t>(i) * sizeof(T), big_endian)) * scale;
  }
}

// Calls `use` with a value of the C++ type that `element` names.
template <typename F>
void with_type(Element element, F use) {
  switch (element) {
    case Element::u8: return use(std::uint8_t{});
    case Element::i8: return use(std::int8_t{});
    case Element::u16: return use(std::uint16_t{});
    case Element::i16: return use(std::int16_t{});
    case Element::u32: return use(std::uint32_t{});
    case Element::i32: return use(std::int32_t{});
    case Element::u64: return use(std::uint64_t{});
    case Element::i64: return use(std::int64_t{});
    case Element::f32: return use(float{});
    case Element::f64: return use(double{});
  }
}

// Calls `use` with the bytes [at, at + count) of the source, copied only if they are not in memory.
template <typename F>
void with_bytes(const Source& source, std::uint64_t at, std::uint64_t count, F use) {
  if (const std::byte* bytes = source.at(at, count)) return use(bytes);
  Scratch scratch(count);
  source.read(at, scratch.bytes());
  use(static_cast<const std::byte*>(scratch.data()));
}

}  // namespace

std::size_t size_of(Element element) {
  std::size_t bytes = 0;
  with_type(element, [&](auto v) { bytes = sizeof v; });
  return bytes;
}

bool is_float(Element element) { return element == Element::f32 || element == Element::f64; }

std::string_view name_of(Element element) {
  constexpr std::string_view names[] = {"u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f32", "f64"};
  return names[static_cast<std::size_t>(element)];
}

void Array::read_f32(std::uint64_t at, std::int64_t n, float* out, float scale) const {
  with_bytes(*source, at, static_cast<std::uint64_t>(n) * size_of(element), [&](const std::byte* from) {
    with_type(element, [&](auto v) { to_f32<decltype(v)>(from, big_endian, n, out, scale); });
  });
}

void Array::read_i32(std::uint64_t at, std::int64_t n, std::int32_t* out) const {
  with_bytes(*source, at, static_cast<std::uint64_t>(n) * size_of(element), [&](const std::byte* from) {
    with_type(element, [&](auto v) {
      using T = decltype(v);
      for (std::int64_t i = 0; i < n; ++i) {
        const std::size_t here = static_cast<std::size_t>(i) * sizeof(T);
        const T value = load<T>(from + here, big_endian);
        if constexpr (!std::is_floating_point_v<T>) {
          if (!std::in_range<std::int32_t>(value))
            corrupt(*source, at + here, "a whole number of 32 bits", fmt::format("{}", value));
        }
        out[i] = static_cast<std::int32_t>(value);
      }
    });
  });
}

Array dense_array(SourcePtr source, Element element, bool big_endian, const std::vector<std::uint64_t>& extents,
                  std::uint64_t offset) {
  if (extents.empty() || extents.size() > Shape::max_rank)
    corrupt(*source, 0, "1 to 6 dimensions", fmt::format("{}", extents.size()));
  if (extents[0] == 0) corrupt(*source, offset, "at least one sample", "none");
  std::uint64_t sample = 1;
  std::vector<std::int64_t> dims;
  for (std::size_t i = 1; i < extents.size(); ++i) {
    if (extents[i] == 0) corrupt(*source, offset, "extents of at least 1", "0");
    sample = checked_product(sample, extents[i], *source, offset);
    dims.push_back(static_cast<std::int64_t>(extents[i]));
  }
  const std::uint64_t stride = checked_product(sample, size_of(element), *source, offset);
  const std::uint64_t bytes = checked_product(stride, extents[0], *source, offset);
  if (source->size() < offset || source->size() - offset != bytes)
    corrupt(*source, offset, fmt::format("{} bytes of numbers, as the header declares", bytes),
            fmt::format("{}{}", source->size() < offset ? 0 : source->size() - offset,
                        source->size() < offset + bytes ? " (truncated?)" : ""));
  return {std::move(source), element, big_endian, extents[0], Shape(dims), offset, stride};
}

std::uint64_t declared_bytes(const Source& source, Element element, const std::vector<std::uint64_t>& extents,
                             std::uint64_t offset) {
  std::uint64_t bytes = size_of(element);
  for (const std::uint64_t extent : extents) bytes = checked_product(bytes, extent, source, offset);
  return bytes + offset;
}

std::vector<std::string> read_class_names(Disk& disk, const std::string& path) {
  std::vector<std::string> names;
  if (!disk.exists(path)) return names;
  const std::string text = read_text(disk, path, 1 << 20);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = std::string_view(text).substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) names.emplace_back(line);
    at = end + 1;
  }
  return names;
}

namespace {

class ArrayDataset : public Dataset {
 public:
  ArrayDataset(DatasetInfo info, Array x, std::optional<Array> y, bool channels_last, float scale)
      : Dataset(std::move(info)), x_(std::move(x)), y_(std::move(y)), channels_last_(channels_last), scale_(scale) {}

  void get(std::uint64_t index, const SampleContext&, SampleRef out) const override {
    const std::int64_t n = x_.sample.elements();
    if (fields()[0].dtype == DType::i32) {
      x_.read_i32(x_.place(index), n, reinterpret_cast<std::int32_t*>(out[0]));
    } else if (channels_last_) {
      Scratch scratch(static_cast<std::size_t>(n) * sizeof(float));
      auto* const from = reinterpret_cast<float*>(scratch.data());
      auto* const to = reinterpret_cast<float*>(out[0]);
      x_.read_f32(x_.place(index), n, from, scale_);
      const std::int64_t channels = fields()[0].shape[0], area = n / channels;
      for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t i = 0; i < area; ++i) to[c * area + i] = from[i * channels + c];
    } else {
      x_.read_f32(x_.place(index), n, reinterpret_cast<float*>(out[0]), scale_);
    }
    if (!y_) return;
    if (fields()[1].dtype == DType::i32)
      y_->read_i32(y_->place(index), y_->sample.elements(), reinterpret_cast<std::int32_t*>(out[1]));
    else
      y_->read_f32(y_->place(index), y_->sample.elements(), reinterpret_cast<float*>(out[1]));
  }

 private:
  Array x_;
  std::optional<Array> y_;
  bool channels_last_;
  float scale_;
};

// The number of classes, after a look at every label.
std::int64_t count_classes(const Array& y, std::int64_t declared) {
  ClassCounter counter(y.sample.rank() == 0 ? ClassCounter::Of::samples : ClassCounter::Of::tokens);
  const std::int64_t n = y.sample.elements();
  std::vector<std::int32_t> labels(static_cast<std::size_t>(n));
  for (std::uint64_t i = 0; i < y.count; ++i) {
    y.read_i32(y.place(i), n, labels.data());
    for (const std::int32_t label : labels) {
      if (label < 0 || (declared > 0 && label >= declared))
        corrupt(*y.source, y.place(i),
                declared > 0 ? fmt::format("a class from 0 to {}", declared - 1) : "a class of 0 or more",
                fmt::format("{} (sample {})", label, i));
      if (declared == 0) counter.add(label, i);
    }
  }
  return declared > 0 ? declared : counter.classes(y.source->name());
}

Field array_input(const Array& x, const ArrayOptions& options, bool channels_last) {
  using Input = ArrayOptions::Input;
  Shape shape = x.sample;
  const bool image =
      options.input == Input::image ||
      (options.input == Input::automatic && (shape.rank() == 3 || (x.element == Element::u8 && shape.rank() == 2)));
  if (image) {
    if (shape.rank() == 2) shape = Shape{1, shape[0], shape[1]};
    if (shape.rank() != 3)
      bad_input("{}: an image has two or three dimensions, but a sample here is {}", x.source->name(),
                to_string(shape));
    if (channels_last && x.sample.rank() == 3) shape = Shape{shape[2], shape[0], shape[1]};
    return {"image", DType::f32, shape};
  }
  if (options.input == Input::tokens && is_float(x.element))
    bad_input("{}: tokens are whole numbers, but these are {}", x.source->name(), name_of(x.element));
  if (options.input == Input::tokens) return {"tokens", DType::i32, shape};
  return {"features", DType::f32, shape};
}

}  // namespace

std::shared_ptr<const Dataset> array_dataset(Array x, std::optional<Array> y, const ArrayOptions& options) {
  const bool channels_last = options.channels_last && x.sample.rank() == 3;
  DatasetInfo info;
  info.size = x.count;
  info.fields.push_back(array_input(x, options, channels_last));
  if (y) {
    if (y->count != x.count)
      bad_input("{} has {} samples, but {} has {} labels", x.source->name(), x.count, y->source->name(), y->count);
    while (y->sample.rank() > 0 && y->sample[-1] == 1)  // [N, 1] means [N]
      y->sample = Shape(y->sample.dims().first(static_cast<std::size_t>(y->sample.rank()) - 1));
    if (is_float(y->element)) {
      info.fields.push_back({"target", DType::f32, y->sample});
    } else {
      info.fields.push_back({y->sample.rank() == 0 ? "label" : "targets", DType::i32, y->sample});
      const auto declared =
          std::max<std::int64_t>(options.classes, static_cast<std::int64_t>(options.class_names.size()));
      info.classes = count_classes(*y, declared);
      info.class_names = options.class_names;
    }
  }
  Fingerprint print;  // last: it reads all of both
  if (options.fingerprint) {
    print.add(fingerprint_of(*x.source)).add(to_string(info.fields[0]));
    if (y && y->source != x.source) print.add(fingerprint_of(*y->source));
    info.fingerprint = print.hex();
  }
  const float scale =
      options.scale.value_or(x.element == Element::u8 && info.fields[0].dtype == DType::f32 ? 1.0f / 255 : 1.0f);
  return std::make_shared<ArrayDataset>(std::move(info), std::move(x), std::move(y), channels_last, scale);
}

}  // namespace echelon::data
