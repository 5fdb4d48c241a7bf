#pragma once
// Which slices are sent in a step, if not all may be (Bösen): the most significant ones, as many as there is room for;
// but none is ever sent later than `staleness` steps after its last time, because a worker would wait for it then.
// Slices whose time runs out are therefore sent first, as early as needed to stay within the budget in every step.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace echelon::exchanges {

class SliceBudget {
 public:
  SliceBudget(std::size_t slices, std::int64_t staleness);
  // The fewest slices a step with which none is ever late.
  static std::size_t least(std::size_t slices, std::int64_t staleness);

  // The slices of this step, the most significant first: `most` of them, but never fewer than `least`.
  const std::vector<std::uint32_t>& choose(std::span<const float> significance, std::size_t most);
  std::span<std::int64_t> waits() { return waits_; }  // steps since each was sent, for checkpoints

 private:
  std::size_t least_;
  std::int64_t staleness_;
  std::vector<std::int64_t> waits_;
  std::vector<std::uint32_t> by_age_, chosen_;
};

// Bytes that may be sent by now at a rate. What is not used is kept, up to `most`: a pause is no licence for a flood.
class ByteBudget {
 public:
  ByteBudget(double rate, double most) : rate_(rate), most_(most) {}
  void advance(double now) {
    if (last_ >= 0) bytes_ = std::min(most_, bytes_ + rate_ * (now - last_));
    last_ = now;
  }
  void stop() { last_ = -1; }  // the time until the next `advance` gives nothing: a pause between two rounds of steps
  double& bytes() { return bytes_; }
  void spend(double bytes) { bytes_ -= bytes; }  // more than there is must be made up for

 private:
  double rate_, most_;
  double bytes_ = 0, last_ = -1;
};

}  // namespace echelon::exchanges
