#pragma once
// The tokens of a text model and what they stand for:
//   bytes       all 256
//   characters  the Unicode code points that occur in a text, numbered in ascending order
//   byte pairs  data/text/byte_pairs.h
//   words       data/text/words.h
// Immutable and thread-safe. `to_text` is what a file of tokens holds, so that another text can have the same tokens.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/byte_pairs.h"
#include "data/text/words.h"

namespace echelon::data {

class Vocabulary {
 public:
  static Vocabulary bytes();
  // The characters of `text`, which must be UTF-8: BadInput naming `name` and the offset if it is not.
  static Vocabulary characters(std::string_view text, std::string_view name);
  static Vocabulary byte_pairs(BytePairs pairs);
  static Vocabulary words(Words words);
  // What to_text wrote; BadInput if it is not that.
  static Vocabulary from_text(std::string_view text);

  // "bytes", "characters U+000A U+0020 ...", "bpe\n" and the pairs, or "words\n" and the words
  std::string to_text() const;
  std::size_t size() const;
  std::string_view level() const;  // "byte", "character", "bpe", "word"
  bool is_bytes() const { return points_.empty() && !pairs_ && !words_; }

  // BadInput naming `name` and the offset for a character that is not in the vocabulary.
  std::vector<std::int32_t> encode(std::string_view text, std::string_view name) const;
  std::string decode(std::span<const std::int32_t> tokens) const;  // tokens that do not exist become U+FFFD (or '?')
  // The tokens of `text` as 1, 2 or 4 bytes each (the smallest that holds all), little-endian; for large texts.
  std::vector<std::byte> encode_packed(std::string_view text, std::string_view name) const;
  std::size_t packed_width() const { return size() <= 1u << 8 ? 1 : size() <= 1u << 16 ? 2 : 4; }

  bool operator==(const Vocabulary& other) const;

 private:
  template <typename F>
  void for_each_token(std::string_view text, std::string_view name, F use) const;
  std::vector<char32_t> points_;  // ascending
  std::shared_ptr<const BytePairs> pairs_;
  std::shared_ptr<const Words> words_;  // none of the three: bytes
};

// How much of the UTF-8 text is whole characters: what may be printed before the rest has come.
std::size_t whole_characters(std::string_view text);

}  // namespace echelon::data
