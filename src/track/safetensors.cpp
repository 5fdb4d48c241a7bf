#include "track/safetensors.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <set>

#include "base/json.h"

namespace echelon {

namespace {

constexpr std::string_view metadata_key = "__metadata__";

constexpr std::string_view stored_name(DType t) {
  switch (t) {
    case DType::f32: return "F32";
    case DType::i32: return "I32";
    case DType::u8: return "U8";
  }
  return "?";
}

// The types that files have, with their bytes.
constexpr std::pair<std::string_view, std::size_t> stored_types[]{
    {"F32", 4}, {"I32", 4}, {"U8", 1},  {"F64", 8}, {"F16", 2}, {"BF16", 2}, {"I64", 8},
    {"I16", 2}, {"I8", 1},  {"U16", 2}, {"U32", 4}, {"U64", 8}, {"BOOL", 1}};

std::size_t bytes_of_type(std::string_view name) {
  for (const auto& [type, bytes] : stored_types)
    if (type == name) return bytes;
  return 0;
}

std::optional<DType> dtype_named(std::string_view name) {
  for (const DType t : {DType::f32, DType::i32, DType::u8})
    if (stored_name(t) == name) return t;
  return std::nullopt;
}

float from_half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const double magnitude = exponent == 31  ? (mantissa ? std::nan("") : HUGE_VAL)
                           : exponent == 0 ? std::ldexp(mantissa, -24)
                                           : std::ldexp(1024 + mantissa, exponent - 25);
  return static_cast<float>(bits & 0x8000 ? -magnitude : magnitude);
}

std::vector<const TensorView*> in_file_order(std::span<const TensorView> tensors) {
  std::vector<const TensorView*> order;
  for (const auto& t : tensors) order.push_back(&t);
  std::ranges::sort(order, [](const TensorView* a, const TensorView* b) {
    return std::pair(-static_cast<int>(size_of(a->dtype)), std::string_view(a->name)) <
           std::pair(-static_cast<int>(size_of(b->dtype)), std::string_view(b->name));
  });
  return order;
}

std::string header_of(std::span<const TensorView* const> order, const Metadata& metadata) {
  // Written by hand because the header's order is the file's, while our JSON objects are sorted by key.
  std::string header = "{";
  if (!metadata.empty()) header += fmt::format("\"{}\":{}", metadata_key, Json(metadata).dump());
  std::uint64_t offset = 0;
  for (const TensorView* t : order) {
    invariant(t->name != metadata_key, "a tensor is named __metadata__");
    invariant(t->bytes.size() == static_cast<std::size_t>(t->shape.elements()) * size_of(t->dtype),
              "a tensor's bytes do not fit its shape");
    header += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                          header.size() > 1 ? "," : "", Json(t->name).dump(), stored_name(t->dtype),
                          fmt::join(t->shape.dims(), ","), offset, offset + t->bytes.size());
    offset += t->bytes.size();
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');  // so that the numbers are aligned in the file
  return header;
}

}  // namespace

FileDigest write_safetensors(Disk& disk, const std::string& path, std::span<const TensorView> tensors,
                             const Metadata& metadata) {
  const auto order = in_file_order(tensors);
  std::set<std::string_view> names;
  for (const TensorView* t : order) invariant(names.insert(t->name).second, "two tensors have the same name");
  const std::string header = header_of(order, metadata);
  std::array<std::byte, 8> length;
  for (int i = 0; i < 8; ++i) length[i] = static_cast<std::byte>(header.size() >> (8 * i));
  HashedWriter writer(disk, path);
  writer.append(length);
  writer.append(header);
  for (const TensorView* t : order) writer.append(t->bytes);
  return writer.finish();
}

namespace {

// The checks of one header entry; `where` says file and tensor.
class EntryReader {
 public:
  EntryReader(std::string_view path, std::uint64_t data_begin, std::uint64_t data_bytes)
      : path_(path), data_begin_(data_begin), data_bytes_(data_bytes) {}

  StoredTensor read(const std::string& name, const Json& entry) const {
    const auto where = fmt::format("{}: header (offset 8), tensor {}", path_, Json(name).dump());
    if (!entry.is_object()) bad_input("{}: expected an object, found {}", where, entry.type_name());
    for (const auto& [key, value] : entry.items())
      if (key != "dtype" && key != "shape" && key != "data_offsets")
        bad_input("{}: expected dtype, shape and data_offsets, found the key {}", where, Json(key).dump());
    StoredTensor tensor;
    tensor.name = name;
    tensor.stored = stored_type(where, entry);
    tensor.dtype = dtype_named(tensor.stored).value_or(DType::u8);
    tensor.shape = shape(where, entry);
    const auto [begin, end] = range(where, entry);
    const std::uint64_t needed = bytes_of(where, tensor);
    if (end - begin != needed)
      bad_input("{}: {} {} is {} bytes, but data_offsets [{}, {}] is {}", where, tensor.stored, to_string(tensor.shape),
                needed, begin, end, end - begin);
    tensor.offset = data_begin_ + begin;
    tensor.bytes = needed;
    return tensor;
  }

 private:
  static const Json& member(const std::string& where, const Json& entry, const char* key) {
    const auto it = entry.find(key);
    if (it == entry.end()) bad_input("{}: {} is missing", where, key);
    return *it;
  }

  static std::string stored_type(const std::string& where, const Json& entry) {
    const Json& value = member(where, entry, "dtype");
    if (!value.is_string() || bytes_of_type(value.get_ref<const std::string&>()) == 0)
      bad_input("{}: expected a dtype such as F32, BF16 or I64, found {}", where, shortened(value));
    return value.get<std::string>();
  }

  static Shape shape(const std::string& where, const Json& entry) {
    const Json& value = member(where, entry, "shape");
    if (!value.is_array() || value.size() > Shape::max_rank)
      bad_input("{}: expected a shape of at most {} numbers, found {}", where, Shape::max_rank, shortened(value));
    std::vector<std::int64_t> dims;
    for (const Json& d : value) dims.push_back(static_cast<std::int64_t>(number(where, "shape", d)));
    return Shape(dims);
  }

  std::pair<std::uint64_t, std::uint64_t> range(const std::string& where, const Json& entry) const {
    const Json& value = member(where, entry, "data_offsets");
    if (!value.is_array() || value.size() != 2)
      bad_input("{}: expected data_offsets [begin, end], found {}", where, shortened(value));
    const std::uint64_t begin = number(where, "data_offsets", value[0]), end = number(where, "data_offsets", value[1]);
    if (begin > end || end > data_bytes_)
      bad_input("{}: expected data_offsets within the {} bytes from offset {} on, found [{}, {}]", where, data_bytes_,
                data_begin_, begin, end);
    return {begin, end};
  }

  static std::uint64_t number(const std::string& where, const char* key, const Json& value) {
    constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > largest)
      bad_input("{}: expected whole numbers in {}, found {}", where, key, shortened(value));
    return value.get<std::uint64_t>();
  }

  static std::uint64_t bytes_of(const std::string& where, const StoredTensor& tensor) {
    std::uint64_t bytes = bytes_of_type(tensor.stored);
    for (const auto d : tensor.shape.dims())
      if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(d), &bytes))
        bad_input("{}: the shape {} is too large for any file", where, to_string(tensor.shape));
    return bytes;
  }

  static std::string shortened(const Json& value) {
    const std::string text = value.dump();
    return text.size() <= 60 ? text : fmt::format("{} of {} characters", value.type_name(), text.size());
  }

  std::string_view path_;
  std::uint64_t data_begin_, data_bytes_;
};

Metadata read_metadata(std::string_view path, const Json& value) {
  if (!value.is_object()) bad_input("{}: header (offset 8): {} is not an object", path, metadata_key);
  Metadata metadata;
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string())
      bad_input("{}: header (offset 8): expected text for {} in {}, found {}", path, Json(key).dump(), metadata_key,
                text.type_name());
    metadata[key] = text.get<std::string>();
  }
  return metadata;
}

// Every byte behind the header belongs to exactly one tensor.
void check_cover(const std::string& path, std::vector<StoredTensor> tensors, std::uint64_t begin, std::uint64_t end) {
  std::ranges::sort(tensors, [](const auto& a, const auto& b) {
    return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);
  });
  std::uint64_t at = begin;
  for (const auto& t : tensors) {
    if (t.offset != at)
      bad_input("{}: tensor {}: expected its bytes at offset {}, where the one before ends, found {}", path,
                Json(t.name).dump(), at, t.offset);
    at += t.bytes;
  }
  if (at != end) bad_input("{}: expected the file to end at offset {}, found {} bytes more", path, at, end - at);
}

}  // namespace

SafetensorsFile::SafetensorsFile(Disk& disk, const std::string& path) : SafetensorsFile(disk.open(path), path) {}

SafetensorsFile::SafetensorsFile(std::unique_ptr<File> file, std::string name_for_messages)
    : file_(std::move(file)), path_(std::move(name_for_messages)) {
  read_header();
}

void SafetensorsFile::read_header() {
  const std::uint64_t size = file_->size();
  std::array<std::byte, 8> length{};
  if (size < 8 || file_->read_at(0, length) != 8)
    bad_input("{}: offset 0: expected 8 bytes with the header's length, found a file of {} bytes", path_, size);
  std::uint64_t header_bytes = 0;
  for (int i = 7; i >= 0; --i) header_bytes = header_bytes << 8 | static_cast<std::uint64_t>(length[i]);
  const std::uint64_t most = std::min(size - 8, max_header_bytes);
  if (header_bytes < 2 || header_bytes > most)
    bad_input("{} is no safetensors file (offset 0: expected a header of 2 to {} bytes, found a length of {})", path_,
              most, header_bytes);
  std::string header(header_bytes, '\0');
  if (const auto n = file_->read_at(8, std::as_writable_bytes(std::span(header))); n != header_bytes)
    bad_input("{}: offset 8: expected {} bytes of header, found {}", path_, header_bytes, n);
  if (header[0] != '{')
    bad_input("{}: offset 8: expected '{{', found byte 0x{:02x}", path_, static_cast<unsigned char>(header[0]));

  constexpr std::size_t values_per_tensor = 32;  // three keys, six extents, two offsets, brackets
  const Json json =
      parse_json(header, path_ + ": header (offset 8)", {.depth = 4, .values = max_tensors * values_per_tensor});
  if (json.size() > max_tensors + 1)
    bad_input("{}: header (offset 8): expected at most {} tensors, found {}", path_, max_tensors, json.size());
  const std::uint64_t data_begin = 8 + header_bytes;
  const EntryReader reader(path_, data_begin, size - data_begin);
  for (const auto& [name, entry] : json.items()) {
    if (name == metadata_key)
      metadata_ = read_metadata(path_, entry);
    else
      tensors_.push_back(reader.read(name, entry));
  }
  check_cover(path_, tensors_, data_begin, size);
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto it = std::ranges::lower_bound(tensors_, name, {}, [](const auto& t) { return std::string_view(t.name); });
  return it != tensors_.end() && it->name == name ? &*it : nullptr;
}

void SafetensorsFile::read(const StoredTensor& tensor, std::span<std::byte> into) {
  invariant(into.size() == tensor.bytes, "a tensor is read into memory of another size");
  if (const auto n = file_->read_at(tensor.offset, into); n != into.size())
    bad_input("{}: tensor {}: expected {} bytes at offset {}, found {}", path_, Json(tensor.name).dump(), into.size(),
              tensor.offset, n);
}

Tensor SafetensorsFile::read(std::string_view name) {
  const StoredTensor* stored = find(name);
  if (!stored) bad_input("{}: there is no tensor '{}' in it", path_, name);
  if (!dtype_named(stored->stored)) bad_input("{}: tensor '{}' is {}, not F32, I32 or U8", path_, name, stored->stored);
  Tensor tensor(stored->dtype, stored->shape);
  read(*stored, tensor.bytes());
  return tensor;
}

std::string_view StoredTensor::type_name() const { return dtype_named(stored) ? name_of(dtype) : stored; }

bool SafetensorsFile::is_float(const StoredTensor& tensor) {
  return tensor.stored == "F32" || tensor.stored == "F64" || tensor.stored == "F16" || tensor.stored == "BF16";
}

std::vector<float> SafetensorsFile::read_floats(const StoredTensor& tensor) {
  invariant(is_float(tensor), "a tensor that is read as floats holds floats");
  std::vector<std::byte> bytes(tensor.bytes);
  read(tensor, bytes);
  std::vector<float> out(tensor.bytes / bytes_of_type(tensor.stored));
  const auto each = [&]<typename T>(T, const auto& convert) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      T value;
      std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
      out[i] = convert(value);
    }
  };
  if (tensor.stored == "F32") each(float{}, [](float x) { return x; });
  if (tensor.stored == "F64") each(double{}, [](double x) { return static_cast<float>(x); });
  if (tensor.stored == "F16") each(std::uint16_t{}, from_half);
  if (tensor.stored == "BF16")
    each(std::uint16_t{}, [](std::uint16_t x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16); });
  return out;
}

void SafetensorsFile::read_all(std::span<const TensorSlot> slots) {
  std::vector<std::string> problems;
  std::map<std::string_view, const TensorSlot*> wanted;
  for (const auto& slot : slots) {
    wanted[slot.name] = &slot;
    const StoredTensor* stored = find(slot.name);
    if (!stored)
      problems.push_back(fmt::format("'{}' {} is missing", slot.name, to_string(slot.shape)));
    else if (stored->stored != stored_name(slot.dtype) || !(stored->shape == slot.shape))
      problems.push_back(fmt::format("'{}': expected {} {}, found {} {}", slot.name, name_of(slot.dtype),
                                     to_string(slot.shape), stored->type_name(), to_string(stored->shape)));
  }
  for (const auto& t : tensors_)
    if (!wanted.contains(t.name))
      problems.push_back(fmt::format("'{}' {} has no place here", t.name, to_string(t.shape)));
  if (!problems.empty()) {
    constexpr std::size_t shown = 10;
    const std::size_t more = problems.size() > shown ? problems.size() - shown : 0;
    problems.resize(problems.size() - more);
    bad_input("{} does not fit:\n  {}{}", path_, fmt::join(problems, "\n  "),
              more ? fmt::format("\n  and {} more", more) : "");
  }
  for (const auto& slot : slots) read(*find(slot.name), slot.bytes);
}

}  // namespace echelon
