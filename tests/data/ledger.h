#pragma once
// Writes down which samples were used in an epoch, and can say whether each was used exactly once. One bit a sample.
// Belongs to one thread.

#include <fmt/format.h>

#include <algorithm>
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
  void next_epoch() { *this = Ledger(used_.size()); }

 private:
  std::vector<bool> used_;
  std::uint64_t count_ = 0, wrong_ = 0, first_wrong_ = 0;
};

inline void Ledger::note(std::span<const std::uint64_t> samples) {
  for (const std::uint64_t s : samples) {
    if (s >= used_.size() || used_[s]) {
      if (wrong_++ == 0) first_wrong_ = s;
      continue;
    }
    used_[s] = true;
    ++count_;
  }
}

inline std::string Ledger::complaint() const {
  if (wrong_ > 0)
    return fmt::format("sample {} {} ({} such cases)", first_wrong_,
                       first_wrong_ < used_.size() ? "was used twice" : "does not exist", wrong_);
  if (count_ < used_.size()) {
    const auto missing = std::ranges::find(used_, false) - used_.begin();
    return fmt::format("{} of {} samples were not used, the first is {}", used_.size() - count_, used_.size(), missing);
  }
  return {};
}

}  // namespace echelon::data
