#pragma once
// Writes down which samples were used in an epoch, and can say whether each was used exactly once. One bit a sample.
// Belongs to one thread.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace echelon::data {

class Ledger {
 public:
  explicit Ledger(std::uint64_t samples) : used_(samples, false) {}

  void note(std::span<const std::uint64_t> samples);  // a sample that does not exist counts as wrong, too
  bool complete() const { return wrong_ == 0 && count_ == used_.size(); }
  // Empty if every sample was used exactly once; else what is wrong: "sample 17 was used twice", "3 samples ...".
  std::string complaint() const;
  void next_epoch();  // begins again with an empty page

 private:
  std::vector<bool> used_;
  std::uint64_t count_ = 0, wrong_ = 0, first_wrong_ = 0;
};

}  // namespace echelon::data
