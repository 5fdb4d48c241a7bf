#include "data/vocabulary.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace echelon::data {

namespace {

constexpr char32_t beyond = 0x110000;
bool is_character(char32_t p) { return p < beyond && !(p >= 0xD800 && p < 0xE000); }  // half of a UTF-16 pair is none

// The code point that begins at `at`, and its length in bytes. Overlong forms and surrogates are not UTF-8.
struct Character {
  char32_t point;
  std::size_t bytes;
};

Character character_at(std::string_view text, std::size_t at, std::string_view name) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  char32_t point = first & (0x7Fu >> length);
  bool good = first >= 0xC2 && first <= 0xF4;
  for (std::size_t i = 1; i < length; ++i) {
    good = good && (byte(i) & 0xC0) == 0x80;
    point = point << 6 | (byte(i) & 0x3F);
  }
  constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (!good || point < least[length] || !is_character(point))
    bad_input(
        "{}: at byte {}: expected UTF-8 text, found byte {:#04x} (set encoding = \"latin-1\" or \"utf-16\" if it "
        "is that, or level = \"byte\" for any bytes)",
        name, at, first);
  return {point, length};
}

void append(std::string& text, char32_t p) {
  const auto put = [&](char32_t b) { text.push_back(static_cast<char>(b)); };
  if (p < 0x80) {
    put(p);
  } else if (p < 0x800) {
    put(0xC0 | p >> 6), put(0x80 | (p & 0x3F));
  } else if (p < 0x10000) {
    put(0xE0 | p >> 12), put(0x80 | (p >> 6 & 0x3F)), put(0x80 | (p & 0x3F));
  } else {
    put(0xF0 | p >> 18), put(0x80 | (p >> 12 & 0x3F)), put(0x80 | (p >> 6 & 0x3F)), put(0x80 | (p & 0x3F));
  }
}

}  // namespace

Vocabulary Vocabulary::bytes() { return {}; }

Vocabulary Vocabulary::characters(std::string_view text, std::string_view name) {
  std::vector<bool> seen(beyond, false);
  for (std::size_t at = 0; at < text.size();) {
    const auto [point, bytes] = character_at(text, at, name);
    seen[point] = true;
    at += bytes;
  }
  Vocabulary v;
  for (char32_t p = 0; p < beyond; ++p)
    if (seen[p]) v.points_.push_back(p);
  if (v.points_.empty()) bad_input("{}: an empty text has no characters", name);
  return v;
}

Vocabulary Vocabulary::byte_pairs(BytePairs pairs) {
  Vocabulary v;
  v.pairs_ = std::make_shared<BytePairs>(std::move(pairs));
  return v;
}

Vocabulary Vocabulary::words(Words words) {
  Vocabulary v;
  v.words_ = std::make_shared<Words>(std::move(words));
  return v;
}

Vocabulary Vocabulary::from_text(std::string_view text) {
  if (text == "bytes") return {};
  constexpr std::string_view pairs = "bpe\n", listed = "words\n";
  if (text.starts_with(pairs) || text.starts_with(listed)) {
    const bool of_pairs = text.starts_with(pairs);
    const std::string_view lines = text.substr(of_pairs ? pairs.size() : listed.size());
    Vocabulary v = of_pairs ? byte_pairs(BytePairs::from_text(lines)) : words(Words::from_text(lines));
    if (v.to_text() != text) bad_input("a vocabulary is written in one way only, without zeros in front of numbers");
    return v;
  }
  constexpr std::string_view prefix = "characters";
  Vocabulary v;
  const auto wrong = [&] {
    bad_input("a vocabulary is 'bytes', 'characters U+000A ...', or the lines of 'bpe' or 'words', not '{:.40}'", text);
  };
  if (!text.starts_with(prefix)) wrong();
  for (std::string_view rest = text.substr(prefix.size()); !rest.empty();) {
    std::uint32_t point = 0;
    if (!rest.starts_with(" U+")) wrong();
    rest.remove_prefix(3);
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), point, 16);
    if (error != std::errc{} || !is_character(point) || (!v.points_.empty() && point <= v.points_.back())) wrong();
    v.points_.push_back(point);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  }
  if (v.points_.empty() || v.to_text() != text) wrong();  // "U+a" is U+000A too, but not as we write it
  return v;
}

std::size_t Vocabulary::size() const {
  return pairs_ ? pairs_->size() : words_ ? words_->size() : points_.empty() ? 256 : points_.size();
}

std::string_view Vocabulary::level() const {
  return pairs_ ? "bpe" : words_ ? "word" : points_.empty() ? "byte" : "character";
}

bool Vocabulary::operator==(const Vocabulary& other) const {
  return points_ == other.points_ && bool(pairs_) == bool(other.pairs_) && bool(words_) == bool(other.words_) &&
         (!pairs_ || *pairs_ == *other.pairs_) && (!words_ || *words_ == *other.words_);
}

std::string Vocabulary::to_text() const {
  if (is_bytes()) return "bytes";
  if (pairs_) return "bpe\n" + pairs_->to_text();
  if (words_) return "words\n" + words_->to_text();
  std::string text = "characters";
  for (const char32_t p : points_) text += fmt::format(" U+{:04X}", static_cast<std::uint32_t>(p));
  return text;
}

template <typename F>
void Vocabulary::for_each_token(std::string_view text, std::string_view name, F use) const {
  if (is_bytes()) {
    for (const char c : text) use(static_cast<std::uint32_t>(static_cast<unsigned char>(c)));
    return;
  }
  if (pairs_) return pairs_->encode(text, use);
  if (words_) return words_->encode(text, use);
  for (std::size_t at = 0; at < text.size();) {
    const auto [point, bytes] = character_at(text, at, name);
    const auto it = std::ranges::lower_bound(points_, point);
    if (it == points_.end() || *it != point)
      bad_input("{}: at byte {}: the character '{}' (U+{:04X}) is not among the {} of the vocabulary", name, at,
                text.substr(at, bytes), static_cast<std::uint32_t>(point), points_.size());
    use(static_cast<std::uint32_t>(it - points_.begin()));
    at += bytes;
  }
}

std::vector<std::int32_t> Vocabulary::encode(std::string_view text, std::string_view name) const {
  std::vector<std::int32_t> tokens;
  for_each_token(text, name, [&](std::uint32_t t) { tokens.push_back(static_cast<std::int32_t>(t)); });
  return tokens;
}

std::vector<std::byte> Vocabulary::encode_packed(std::string_view text, std::string_view name) const {
  std::vector<std::byte> packed;
  const std::size_t width = packed_width();
  packed.reserve(pairs_ || words_ ? text.size() / 2 * width : text.size() * (is_bytes() ? 1 : width));
  for_each_token(text, name, [&](std::uint32_t t) {
    for (std::size_t i = 0; i < width; ++i) packed.push_back(static_cast<std::byte>(t >> (8 * i)));
  });
  return packed;
}

std::string Vocabulary::decode(std::span<const std::int32_t> tokens) const {
  std::string text;
  for (const std::int32_t t : tokens) {
    if (t < 0 || static_cast<std::size_t>(t) >= size())
      text += is_bytes() ? "?" : "\xEF\xBF\xBD";
    else if (is_bytes())
      text.push_back(static_cast<char>(t));
    else if (pairs_)
      text += pairs_->bytes_of(static_cast<std::size_t>(t));
    else if (words_)
      text += words_->bytes_of(static_cast<std::size_t>(t));
    else
      append(text, points_[static_cast<std::size_t>(t)]);
  }
  return text;
}

std::size_t whole_characters(std::string_view text) {
  for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto b = static_cast<unsigned char>(text[text.size() - back]);
    if ((b & 0xC0) == 0x80) continue;  // not the first byte of a character
    const std::size_t length = b >= 0xF0 ? 4 : b >= 0xE0 ? 3 : b >= 0xC0 ? 2 : 1;
    return length > back ? text.size() - back : text.size();
  }
  return text.size();
}

}  // namespace echelon::data
