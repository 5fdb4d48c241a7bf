#include "parallel/server/budget.h"

#include <algorithm>
#include <numeric>

namespace echelon::exchanges {

std::size_t SliceBudget::least(std::size_t slices, std::int64_t staleness) {
  const auto steps = static_cast<std::size_t>(staleness) + 1;
  return (slices + steps - 1) / steps;
}

SliceBudget::SliceBudget(std::size_t slices, std::int64_t staleness)
    : least_(least(slices, staleness)), staleness_(staleness), waits_(slices), by_age_(slices) {
  chosen_.reserve(slices);
}

const std::vector<std::uint32_t>& SliceBudget::choose(std::span<const float> significance, std::size_t most) {
  most = std::max(most, least_);
  const std::size_t n = waits_.size();
  std::iota(by_age_.begin(), by_age_.end(), 0u);
  const auto matters_more = [&](std::uint32_t a, std::uint32_t b) {
    return significance[a] != significance[b] ? significance[a] > significance[b] : a < b;
  };
  std::ranges::sort(by_age_, [&](std::uint32_t a, std::uint32_t b) {
    return waits_[a] != waits_[b] ? waits_[a] > waits_[b] : matters_more(a, b);
  });
  // The i + 1 oldest must all be gone when the youngest of them is due: those that do not fit later, go now. Later
  // steps may have room for the least only.
  std::size_t now = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t left = staleness_ - waits_[by_age_[i]];  // further steps in which it may still go
    const auto room = static_cast<std::size_t>(std::max<std::int64_t>(0, left)) * least_;
    if (i + 1 > room) now = std::max(now, i + 1 - room);
  }
  now = std::min(now, most);
  std::ranges::sort(by_age_.begin() + static_cast<std::ptrdiff_t>(now), by_age_.end(), matters_more);
  chosen_.assign(by_age_.begin(), by_age_.begin() + static_cast<std::ptrdiff_t>(std::min(most, n)));
  std::ranges::sort(chosen_, matters_more);
  for (std::int64_t& w : waits_) ++w;
  for (const std::uint32_t c : chosen_) waits_[c] = 0;
  return chosen_;
}

}  // namespace echelon::exchanges
