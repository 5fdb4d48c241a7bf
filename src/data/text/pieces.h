#pragma once
// A text cut into pieces that tokens do not cross: words, numbers, marks and blanks. The pieces, one after the other,
// are the text. A piece is a run of letters (bytes of other alphabets are letters), of digits, or of other marks, with
// the one space before it, if there is one; or a run of blanks. Longer runs are cut at most_piece_bytes, so that the
// work on a piece is bounded.

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace echelon::data {

inline constexpr std::size_t most_piece_bytes = 64;

enum class ByteClass : unsigned char { letter, digit, blank, mark };

constexpr ByteClass byte_class(char c) {
  const auto b = static_cast<unsigned char>(c);
  if ((b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') || b >= 0x80) return ByteClass::letter;
  if (b >= '0' && b <= '9') return ByteClass::digit;
  return b == ' ' || (b >= '\t' && b <= '\r') ? ByteClass::blank : ByteClass::mark;
}

// The length of the piece that `text` (not empty) begins with.
constexpr std::size_t first_piece(std::string_view text) {
  std::size_t at = text[0] == ' ' && text.size() > 1 && byte_class(text[1]) != ByteClass::blank ? 1 : 0;
  const ByteClass kind = byte_class(text[at]);
  const std::size_t most = std::min(text.size(), most_piece_bytes);
  while (at < most && byte_class(text[at]) == kind) {
    // The last space of a run of blanks belongs to the word after it.
    if (kind == ByteClass::blank && at > 0 && text[at] == ' ' && at + 1 < text.size() &&
        byte_class(text[at + 1]) != ByteClass::blank)
      break;
    ++at;
  }
  return at;
}

template <typename F>
void for_each_piece(std::string_view text, F use) {
  while (!text.empty()) {
    const std::size_t length = first_piece(text);
    use(text.substr(0, length));
    text.remove_prefix(length);
  }
}

}  // namespace echelon::data
