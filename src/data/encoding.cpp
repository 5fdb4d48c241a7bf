#include "data/encoding.h"

#include <array>

#include "base/error.h"
#include "base/text.h"

namespace echelon::data {

namespace {

constexpr std::string_view little_mark = "\xFF\xFE", big_mark = "\xFE\xFF";

void add_point(std::vector<std::byte>& out, char32_t point) {
  for (const char c : utf8(point)) out.push_back(static_cast<std::byte>(c));
}

std::vector<std::byte> from_latin1(std::string_view text) {
  std::vector<std::byte> out;
  out.reserve(text.size() + text.size() / 8);
  for (const char c : text) add_point(out, static_cast<unsigned char>(c));
  return out;
}

// Units of two bytes, of which a pair stands for a character beyond the first 65,536. Without a mark the lower byte is
// taken to come first.
std::vector<std::byte> from_utf16(std::string_view text, std::string_view name) {
  const bool big = text.starts_with(big_mark);
  const auto unit = [&](std::size_t at) {
    const auto first = static_cast<unsigned char>(text[at]), second = static_cast<unsigned char>(text[at + 1]);
    return static_cast<char32_t>(big ? first << 8 | second : second << 8 | first);
  };
  const auto wrong = [&](std::size_t at) { bad_input("{}: at byte {}: expected UTF-16 text", name, at); };
  std::vector<std::byte> out;
  out.reserve(text.size() / 2);
  for (std::size_t at = big || text.starts_with(little_mark) ? 2 : 0; at < text.size(); at += 2) {
    if (at + 1 == text.size()) wrong(at);
    char32_t point = unit(at);
    if (point >= 0xD800 && point < 0xE000) {
      if (point >= 0xDC00 || at + 3 >= text.size() || (unit(at + 2) & 0xFC00) != 0xDC00) wrong(at);
      at += 2;
      point = 0x10000 + ((point & 0x3FF) << 10) + (unit(at) & 0x3FF);
    }
    add_point(out, point);
  }
  return out;
}

}  // namespace

std::string_view name_of(Encoding encoding) {
  constexpr std::array<std::string_view, 3> names = {"UTF-8", "Latin-1", "UTF-16"};
  return names[static_cast<std::size_t>(encoding)];
}

bool is_utf8(std::string_view s) {
  for (std::size_t i = 0; i < s.size();) {
    const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(s[k]); };
    const unsigned first = byte(i);
    if (first < 0x80) {
      ++i;
      continue;
    }
    const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || i + length > s.size()) return false;
    std::uint32_t point = first & (0xFFu >> (length + 1));
    for (std::size_t k = 1; k < length; ++k) {
      if ((byte(i + k) & 0xC0u) != 0x80) return false;
      point = point << 6 | (byte(i + k) & 0x3Fu);
    }
    constexpr std::array<std::uint32_t, 5> least = {0, 0, 0x80, 0x800, 0x10000};
    if (point < least[length] || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) return false;
    i += length;
  }
  return true;
}

Encoding find_encoding(std::string_view text) {
  if (text.starts_with(little_mark) || text.starts_with(big_mark)) return Encoding::utf16;
  return is_utf8(text) ? Encoding::utf8 : Encoding::latin1;
}

SourcePtr as_utf8(const SourcePtr& source, Encoding encoding) {
  if (encoding == Encoding::utf8) return source;
  const std::byte* const bytes = source->at(0, source->size());
  invariant(bytes != nullptr, "a text that is turned into UTF-8 lies in memory");
  const std::string_view text(reinterpret_cast<const char*>(bytes), source->size());
  return memory_source(source->name(),
                       encoding == Encoding::latin1 ? from_latin1(text) : from_utf16(text, source->name()));
}

}  // namespace echelon::data
