// The numbers of an ONNX tensor.
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/checked.h"
#include "onnx/model.h"

namespace echelon::onnx {
namespace {

std::size_t onnx_size_of(Element e) {
  switch (e) {
    case Element::f32:
    case Element::i32: return 4;
    case Element::i64:
    case Element::f64: return 8;
    case Element::f16: return 2;
    case Element::u8:
    case Element::boolean: return 1;
  }
  return 0;
}

float half_to_float(std::uint16_t h) {
  const std::uint32_t sign = (h & 0x8000u) << 16, exponent = (h >> 10) & 0x1fu, fraction = h & 0x3ffu;
  if (exponent == 0)
    return std::bit_cast<float>(sign) + (sign ? -1.0f : 1.0f) * static_cast<float>(fraction) * 0x1p-24f;
  return std::bit_cast<float>(exponent == 31 ? sign | 0x7f800000u | fraction << 13
                                             : sign | (exponent + 112) << 23 | fraction << 13);
}

template <typename Stored, typename To>
std::vector<To> convert(const Tensor& t) {
  std::vector<To> out(static_cast<std::size_t>(t.elements()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    Stored s;
    std::memcpy(&s, t.bytes.data() + i * sizeof(Stored), sizeof(Stored));
    out[i] = static_cast<To>(s);
  }
  return out;
}

template <typename To>
std::vector<To> read_numbers(const Tensor& t) {
  if (t.bytes.size() != static_cast<std::size_t>(t.elements()) * onnx_size_of(t.element))
    bad_input("tensor '{}' has {} bytes, which are not those of {} numbers", t.name, t.bytes.size(), t.elements());
  switch (t.element) {
    case Element::f32: return convert<float, To>(t);
    case Element::i32: return convert<std::int32_t, To>(t);
    case Element::i64: return convert<std::int64_t, To>(t);
    case Element::f64: return convert<double, To>(t);
    case Element::u8:
    case Element::boolean: return convert<std::uint8_t, To>(t);
    case Element::f16: {
      std::vector<To> out;
      for (const std::uint16_t h : convert<std::uint16_t, std::uint16_t>(t))
        out.push_back(static_cast<To>(half_to_float(h)));
      return out;
    }
  }
  return {};
}

}  // namespace

std::int64_t elements_of(std::span<const std::int64_t> dims) {
  constexpr std::int64_t most = most_file_bytes, most_beside_nothing = 1 << 22;
  std::int64_t others = 1;
  bool nothing = false;
  for (const std::int64_t d : dims) {
    nothing |= d == 0;
    others = checked_multiply(others, std::max<std::int64_t>(d, 1), "the numbers of a tensor");
  }
  if (others > (nothing ? most_beside_nothing : most))
    throw TooLarge(fmt::format("a tensor [{}] is larger than any that an ONNX file has", fmt::join(dims, ", ")));
  return nothing ? 0 : others;
}

std::int64_t Tensor::elements() const { return elements_of(dims); }

Tensor floats(std::string name, std::vector<std::int64_t> dims, std::span<const float> values) {
  return {std::move(name), Element::f32, std::move(dims),
          std::string(reinterpret_cast<const char*>(values.data()), values.size_bytes())};
}

Tensor integers(std::string name, std::vector<std::int64_t> dims, std::span<const std::int64_t> values) {
  return {std::move(name), Element::i64, std::move(dims),
          std::string(reinterpret_cast<const char*>(values.data()), values.size_bytes())};
}

std::vector<float> read_floats(const Tensor& tensor) { return read_numbers<float>(tensor); }

std::vector<std::int64_t> read_integers(const Tensor& tensor) {
  if (tensor.element == Element::f32 || tensor.element == Element::f64 || tensor.element == Element::f16)
    for (const float x : read_floats(tensor))
      if (!(x > -0x1p62f && x < 0x1p62f)) bad_input("tensor '{}' should have whole numbers", tensor.name);
  return read_numbers<std::int64_t>(tensor);
}

}  // namespace echelon::onnx
