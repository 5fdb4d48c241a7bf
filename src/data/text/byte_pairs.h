#pragma once
// Byte-pair encoding (Sennrich et al. 2016), on bytes (Radford et al. 2019): the first 256 tokens are the bytes; each
// further one is a pair of earlier ones, which a text had most often when it was made. Any bytes can be encoded and
// come back. Pairs do not cross the pieces of a text (data/text/pieces.h). Immutable and thread-safe.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace echelon::data {

class BytePairs {
 public:
  static constexpr std::size_t least_tokens = 256, most_tokens = 1 << 20;
  static constexpr std::size_t most_token_bytes = 64;

  // Trained on `text`: up to `tokens` of them, fewer if no pair is left that occurs twice. The same text gives the same
  // pairs everywhere: of pairs that are equally frequent, the one of lower tokens comes first.
  static BytePairs train(std::string_view text, std::size_t tokens);
  // A line "a b" for each pair. BadInput if a token is not known there, a pair comes twice or a token is too long.
  static BytePairs from_text(std::string_view lines);
  std::string to_text() const;

  std::size_t size() const { return bytes_.size(); }
  std::string_view bytes_of(std::size_t token) const { return bytes_[token]; }
  // `use(token)` for each token of the text, in order.
  void encode(std::string_view text, const std::function<void(std::uint32_t)>& use) const;

  bool operator==(const BytePairs& other) const { return pairs_ == other.pairs_; }

 private:
  using Pair = std::pair<std::uint32_t, std::uint32_t>;
  static std::uint64_t key(Pair p) { return static_cast<std::uint64_t>(p.first) << 32 | p.second; }

  BytePairs();
  void add(Pair pair);
  void merge(std::vector<std::uint32_t>& tokens) const;  // of one piece: its bytes at first

  std::vector<Pair> pairs_;                                 // token 256 + i
  std::vector<std::string> bytes_;                          // by token
  std::unordered_map<std::uint64_t, std::uint32_t> found_;  // key(pair) -> token
};

}  // namespace echelon::data
