#pragma once
// Which slices are sent in a step, if not all may be (Bösen): the most significant ones, as many as the budget has room
// for; but none is ever sent later than `staleness` steps after its last time, because a worker would wait for it then.
// Slices whose time runs out are therefore sent first, as early as needed to stay within the budget in every step.

#include <cstdint>
#include <span>
#include <vector>

namespace echelon::exchanges {

class SliceBudget {
 public:
  // `most` slices a step, but never fewer than `least`.
  SliceBudget(std::size_t slices, std::size_t most, std::int64_t staleness);
  // The fewest slices a step with which none is ever late.
  static std::size_t least(std::size_t slices, std::int64_t staleness);

  // The slices of this step, the most significant first.
  const std::vector<std::uint32_t>& choose(std::span<const float> significance);
  std::span<std::int64_t> waits() { return waits_; }  // steps since each was sent, for checkpoints

 private:
  std::size_t most_;
  std::int64_t staleness_;
  std::vector<std::int64_t> waits_;
  std::vector<std::uint32_t> by_age_, chosen_;
};

}  // namespace echelon::exchanges
