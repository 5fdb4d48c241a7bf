#pragma once
// Weights of a text model that begin with those of another one: rows that stand for a token (an embedding's, those of
// the scores) belong to the same token of the other text, wherever it stands in that one's list.

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "data/vocabulary.h"
#include "recipe/prepare.h"
#include "world/os/disk.h"

namespace echelon {

class MatchingTokens {
 public:
  // `file`: the weights. Nothing is to be matched (see `needed`) unless the network is for text and the file lies in
  // the folder of a run that has other tokens.
  MatchingTokens(Disk& disk, const PreparedRun& prepared, const std::string& file);

  bool needed() const { return !source_of_.empty(); }
  // Whether the weight has a row for each token. False for all where `unknown`.
  bool has_rows_of_tokens(const std::string& weight) const { return weights_.contains(weight); }
  // The network's layers say how many tokens there are, so that weights with rows for tokens cannot be told from
  // others.
  bool unknown() const { return needed() && weights_.empty(); }
  // For each token of this run the other's, or -1.
  const std::vector<std::int64_t>& source_of() const { return source_of_; }
  std::size_t source_tokens() const { return source_tokens_; }
  std::string summary() const;  // "57 of 61 tokens"

 private:
  std::set<std::string> weights_;
  std::vector<std::int64_t> source_of_;
  std::size_t source_tokens_ = 0;
};

}  // namespace echelon
