#pragma once
// Words as tokens: the most frequent pieces of a text (data/text/pieces.h), numbered from 1 in falling frequency; 0 is
// every other. A word has the space before it, so that a text of known words comes back as it was. Immutable and
// thread-safe.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace echelon::data {

class Words {
 public:
  static constexpr std::size_t most_tokens = 1 << 20;

  // Up to `tokens` of them, the unknown one included. Of equally frequent words the one that sorts first comes first.
  static Words train(std::string_view text, std::size_t tokens);
  // A line for each word, with \xNN for blanks, other control characters and the backslash. BadInput for anything else.
  static Words from_text(std::string_view lines);
  std::string to_text() const;

  std::size_t size() const { return words_.size() + 1; }
  std::string_view bytes_of(std::size_t token) const {
    return token == 0 ? "<unk>" : std::string_view(words_[token - 1]);
  }
  void encode(std::string_view text, const std::function<void(std::uint32_t)>& use) const;

  bool operator==(const Words& other) const { return words_ == other.words_; }

 private:
  bool add(std::string word);  // false if it is there already

  std::vector<std::string> words_;
  std::unordered_map<std::string, std::uint32_t> found_;
};

}  // namespace echelon::data
