#pragma once
// The tokens of a text model and what they stand for: all 256 bytes, or the characters (Unicode code points) that occur
// in a text, numbered in ascending order. Immutable and thread-safe. A checkpoint stores `to_text`, so that a model can
// be sampled without its text.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace echelon::data {

class Vocabulary {
 public:
  static Vocabulary bytes();
  // The characters of `text`, which must be UTF-8: BadInput naming `name` and the offset if it is not.
  static Vocabulary characters(std::string_view text, std::string_view name);
  // What to_text wrote; BadInput if it is not that.
  static Vocabulary from_text(std::string_view text);

  std::string to_text() const;  // "bytes", or "characters U+000A U+0020 ..."
  std::size_t size() const { return points_.empty() ? 256 : points_.size(); }
  bool is_bytes() const { return points_.empty(); }

  // BadInput naming `name` and the offset for a character that is not in the vocabulary.
  std::vector<std::int32_t> encode(std::string_view text, std::string_view name) const;
  std::string decode(std::span<const std::int32_t> tokens) const;  // tokens that do not exist become U+FFFD (or '?')
  // The tokens of `text` as 1, 2 or 4 bytes each (the smallest that holds all), little-endian; for large texts.
  std::vector<std::byte> encode_packed(std::string_view text, std::string_view name) const;
  std::size_t packed_width() const { return size() <= 1u << 8 ? 1 : size() <= 1u << 16 ? 2 : 4; }

  bool operator==(const Vocabulary& other) const { return points_ == other.points_; }

 private:
  template <typename F>
  void for_each_token(std::string_view text, std::string_view name, F use) const;
  std::vector<char32_t> points_;  // ascending; empty: bytes
};

}  // namespace echelon::data
