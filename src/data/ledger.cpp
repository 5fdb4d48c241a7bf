#include "data/ledger.h"

#include <fmt/format.h>

#include <algorithm>

namespace echelon::data {

void Ledger::note(std::span<const std::uint64_t> samples) {
  for (const std::uint64_t s : samples) {
    if (s >= used_.size() || used_[s]) {
      if (wrong_++ == 0) first_wrong_ = s;
      continue;
    }
    used_[s] = true;
    ++count_;
  }
}

std::string Ledger::complaint() const {
  if (wrong_ > 0)
    return fmt::format("sample {} {} ({} such cases)", first_wrong_,
                       first_wrong_ < used_.size() ? "was used twice" : "does not exist", wrong_);
  if (count_ < used_.size()) {
    const auto missing = std::ranges::find(used_, false) - used_.begin();
    return fmt::format("{} of {} samples were not used, the first is {}", used_.size() - count_, used_.size(), missing);
  }
  return {};
}

void Ledger::next_epoch() { *this = Ledger(used_.size()); }

}  // namespace echelon::data
