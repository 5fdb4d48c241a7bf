#include "data/text/byte_pairs.h"

#include <algorithm>
#include <charconv>
#include <queue>

#include "base/error.h"
#include "data/text/pieces.h"

namespace echelon::data {

namespace {

// Trains on the different pieces of a text, each with its number. Counts of pairs are kept up to date as pairs are
// merged, and only the pieces that hold a pair are looked at.
class PairTrainer {
 public:
  using Pair = std::pair<std::uint32_t, std::uint32_t>;

  explicit PairTrainer(std::string_view text) {
    std::unordered_map<std::string_view, std::int64_t> counts;
    for_each_piece(text, [&](std::string_view piece) { ++counts[piece]; });
    // In an order of their own: a hash map's is not the same everywhere.
    std::vector<std::pair<std::string_view, std::int64_t>> pieces(counts.begin(), counts.end());
    std::ranges::sort(pieces);
    for (const auto& [piece, count] : pieces) {
      if (piece.size() < 2) continue;
      Piece p{{}, count};
      for (const char c : piece) p.tokens.push_back(static_cast<unsigned char>(c));
      const auto index = static_cast<std::uint32_t>(pieces_.size());
      for (std::size_t i = 0; i + 1 < p.tokens.size(); ++i) change({p.tokens[i], p.tokens[i + 1]}, count, index);
      pieces_.push_back(std::move(p));
    }
    for (const auto& [k, found] : found_) best_.push({found.count, k});
  }

  // The pair that occurs most often, twice at least, and of those the lowest; false if there is none.
  bool best(Pair& pair) {
    while (!best_.empty()) {
      const Candidate top = best_.top();
      const auto it = found_.find(top.key);
      if (it != found_.end() && it->second.count == top.count && top.count >= 2) {
        pair = {static_cast<std::uint32_t>(top.key >> 32), static_cast<std::uint32_t>(top.key)};
        return true;
      }
      best_.pop();  // what it was before some merge
    }
    return false;
  }

  void merge(Pair pair, std::uint32_t token) {
    std::vector<std::uint32_t> holders = std::move(found_[key(pair)].pieces);
    std::ranges::sort(holders);
    const auto [first, last] = std::ranges::unique(holders);
    holders.erase(first, last);
    touched_.clear();
    for (const std::uint32_t index : holders) merge_in(pieces_[index], index, pair, token);
    found_.erase(key(pair));
    std::ranges::sort(touched_);
    const auto [more, end] = std::ranges::unique(touched_);
    touched_.erase(more, end);
    for (const std::uint64_t k : touched_)
      if (const auto it = found_.find(k); it != found_.end()) best_.push({it->second.count, k});
  }

  void forget(Pair pair) { found_.erase(key(pair)); }

 private:
  struct Piece {
    std::vector<std::uint32_t> tokens;
    std::int64_t count;
  };
  struct Found {
    std::int64_t count = 0;
    std::vector<std::uint32_t> pieces;  // that hold or held it, some several times
  };
  struct Candidate {
    std::int64_t count;
    std::uint64_t key;
    bool operator<(const Candidate& o) const { return count != o.count ? count < o.count : key > o.key; }
  };
  static std::uint64_t key(Pair p) { return static_cast<std::uint64_t>(p.first) << 32 | p.second; }

  void change(Pair pair, std::int64_t by, std::uint32_t piece) {
    Found& found = found_[key(pair)];
    found.count += by;
    if (by > 0 && (found.pieces.empty() || found.pieces.back() != piece)) found.pieces.push_back(piece);
    touched_.push_back(key(pair));
  }

  void merge_in(Piece& p, std::uint32_t index, Pair pair, std::uint32_t token) {
    std::vector<std::uint32_t>& t = p.tokens;
    std::size_t to = 0;
    bool changed = false;
    for (std::size_t i = 0; i + 1 < t.size() && !changed; ++i) changed = t[i] == pair.first && t[i + 1] == pair.second;
    if (!changed) return;
    for (std::size_t i = 0; i + 1 < t.size(); ++i) change({t[i], t[i + 1]}, -p.count, index);
    for (std::size_t i = 0; i < t.size(); ++to) {
      const bool here = i + 1 < t.size() && t[i] == pair.first && t[i + 1] == pair.second;
      t[to] = here ? token : t[i];
      i += here ? 2 : 1;
    }
    t.resize(to);
    for (std::size_t i = 0; i + 1 < t.size(); ++i) change({t[i], t[i + 1]}, p.count, index);
  }

  std::vector<Piece> pieces_;
  std::unordered_map<std::uint64_t, Found> found_;
  std::priority_queue<Candidate> best_;
  std::vector<std::uint64_t> touched_;
};

}  // namespace

BytePairs::BytePairs() {
  for (int b = 0; b < 256; ++b) bytes_.emplace_back(1, static_cast<char>(b));
}

void BytePairs::add(Pair pair) {
  found_[key(pair)] = static_cast<std::uint32_t>(bytes_.size());
  bytes_.push_back(bytes_[pair.first] + bytes_[pair.second]);
  pairs_.push_back(pair);
}

BytePairs BytePairs::train(std::string_view text, std::size_t tokens) {
  if (tokens < least_tokens || tokens > most_tokens)
    bad_input("byte pairs have from {} to {} tokens, not {}", least_tokens, most_tokens, tokens);
  BytePairs result;
  PairTrainer trainer(text);
  Pair pair;
  while (result.size() < tokens && trainer.best(pair)) {
    if (result.bytes_[pair.first].size() + result.bytes_[pair.second].size() > most_token_bytes) {
      trainer.forget(pair);
      continue;
    }
    trainer.merge(pair, static_cast<std::uint32_t>(result.size()));
    result.add(pair);
  }
  return result;
}

BytePairs BytePairs::from_text(std::string_view lines) {
  BytePairs result;
  for (std::size_t number = 1; !lines.empty(); ++number) {
    const std::size_t end = lines.find('\n');
    const std::string_view line = lines.substr(0, end);
    Pair pair;
    const char *at = line.data(), *stop = line.data() + line.size();
    const auto first = std::from_chars(at, stop, pair.first);
    const bool space = first.ec == std::errc{} && first.ptr < stop && *first.ptr == ' ';
    const auto second = space ? std::from_chars(first.ptr + 1, stop, pair.second) : first;
    if (end == std::string_view::npos || !space || second.ec != std::errc{} || second.ptr != stop)
      bad_input("pair {}: expected two tokens and the end of the line, found '{:.40}'", number, line);
    if (pair.first >= result.size() || pair.second >= result.size())
      bad_input("pair {}: tokens are below {} there, found '{:.40}'", number, result.size(), line);
    if (result.found_.contains(key(pair))) bad_input("pair {}: '{:.40}' is there already", number, line);
    if (result.bytes_[pair.first].size() + result.bytes_[pair.second].size() > most_token_bytes)
      bad_input("pair {}: a token has at most {} bytes", number, most_token_bytes);
    if (result.size() >= most_tokens) bad_input("there are at most {} tokens", most_tokens);
    result.add(pair);
    lines.remove_prefix(end + 1);
  }
  return result;
}

std::string BytePairs::to_text() const {
  std::string text;
  for (const Pair& p : pairs_) text += fmt::format("{} {}\n", p.first, p.second);
  return text;
}

// The pair that was made first is merged first, wherever it stands: so was the text when the pairs were counted.
void BytePairs::merge(std::vector<std::uint32_t>& tokens) const {
  while (tokens.size() > 1) {
    std::uint32_t first = static_cast<std::uint32_t>(most_tokens);
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i)
      if (const auto it = found_.find(key({tokens[i], tokens[i + 1]})); it != found_.end())
        first = std::min(first, it->second);
    if (first == most_tokens) return;
    const Pair pair = pairs_[first - least_tokens];
    std::size_t to = 0;
    for (std::size_t i = 0; i < tokens.size(); ++to) {
      const bool here = i + 1 < tokens.size() && tokens[i] == pair.first && tokens[i + 1] == pair.second;
      tokens[to] = here ? first : tokens[i];
      i += here ? 2 : 1;
    }
    tokens.resize(to);
  }
}

// Most pieces of a text are words that were there before.
void BytePairs::encode(std::string_view text, const std::function<void(std::uint32_t)>& use) const {
  std::unordered_map<std::string_view, std::vector<std::uint32_t>> known;
  for_each_piece(text, [&](std::string_view piece) {
    const auto [it, fresh] = known.try_emplace(piece);
    if (fresh) {
      for (const char c : piece) it->second.push_back(static_cast<unsigned char>(c));
      merge(it->second);
    }
    for (const std::uint32_t t : it->second) use(t);
  });
}

}  // namespace echelon::data
