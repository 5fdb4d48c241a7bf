#include "data/text/words.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "data/text/pieces.h"

namespace echelon::data {

namespace {

bool stands_for_itself(char c) {
  const auto b = static_cast<unsigned char>(c);
  return b > ' ' && b != '\\' && b != 0x7F;
}

}  // namespace

bool Words::add(std::string word) {
  if (!found_.emplace(word, static_cast<std::uint32_t>(size())).second) return false;
  words_.push_back(std::move(word));
  return true;
}

Words Words::train(std::string_view text, std::size_t tokens) {
  if (tokens < 2 || tokens > most_tokens) bad_input("words have from 2 to {} tokens, not {}", most_tokens, tokens);
  std::unordered_map<std::string_view, std::int64_t> counts;
  for_each_piece(text, [&](std::string_view piece) { ++counts[piece]; });
  std::vector<std::pair<std::int64_t, std::string_view>> pieces;
  for (const auto& [piece, count] : counts) pieces.emplace_back(-count, piece);
  std::ranges::sort(pieces);
  Words words;
  for (const auto& [count, piece] : pieces) {
    if (words.size() >= tokens) break;
    words.add(std::string(piece));
  }
  return words;
}

Words Words::from_text(std::string_view lines) {
  Words words;
  for (std::size_t number = 1; !lines.empty(); ++number) {
    const std::size_t end = lines.find('\n');
    if (end == std::string_view::npos) bad_input("word {}: the line has no end", number);
    const std::string_view line = lines.substr(0, end);
    std::string word;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (stands_for_itself(line[i])) {
        word.push_back(line[i]);
        continue;
      }
      unsigned value = 256;
      if (line.substr(i).starts_with("\\x") && i + 4 <= line.size()) {
        const auto read = std::from_chars(line.data() + i + 2, line.data() + i + 4, value, 16);
        if (read.ptr != line.data() + i + 4) value = 256;
      }
      if (value > 255 || stands_for_itself(static_cast<char>(value)))
        bad_input("word {}: expected letters, or \\xNN for blanks and the backslash, found '{:.40}'", number, line);
      word.push_back(static_cast<char>(value));
      i += 3;
    }
    if (word.empty() || word.size() > most_piece_bytes || first_piece(word) != word.size())
      bad_input("word {}: '{:.40}' is not one word of at most {} bytes", number, line, most_piece_bytes);
    if (words.size() >= most_tokens) bad_input("there are at most {} words", most_tokens);
    if (!words.add(std::move(word))) bad_input("word {}: '{:.40}' is there already", number, line);
    lines.remove_prefix(end + 1);
  }
  return words;
}

std::string Words::to_text() const {
  std::string text;
  for (const std::string& word : words_) {
    for (const char c : word)
      stands_for_itself(c)
          ? text.push_back(c)
          : void(text += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c))));
    text.push_back('\n');
  }
  return text;
}

void Words::encode(std::string_view text, const std::function<void(std::uint32_t)>& use) const {
  std::string word;  // one memory for all of them
  for_each_piece(text, [&](std::string_view piece) {
    word.assign(piece);
    const auto it = found_.find(word);
    use(it == found_.end() ? 0 : it->second);
  });
}

}  // namespace echelon::data
