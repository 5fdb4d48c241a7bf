#pragma once
// A loss that is not a number: the recipe asks for what cannot be trained.

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "parallel/step/shard_compute.h"

namespace echelon {

// The weights are those from before the step.
class NotFinite : public BadInput {
 public:
  struct BadSample {          // that is no number itself
    std::uint64_t index = 0;  // in the order of its epoch
    std::uint32_t epoch = 0;
    std::string field;
  };
  explicit NotFinite(const std::string& text, std::optional<BadSample> sample = {})
      : BadInput(text), sample_(std::move(sample)) {}
  const std::optional<BadSample>& sample() const { return sample_; }  // which brought it; none if no sample did

 private:
  std::optional<BadSample> sample_;
};

// The first shard of the phase whose loss is not finite.
int shard_not_finite(const ComputePhase& phase);

// Throws NotFinite with the place where numbers stopped being numbers: a parameter, or the first operation of the
// shard's computation, which is run once more for that. On the rank that has the shard, after all cores are done.
[[noreturn]] void explain_not_finite(ShardCompute& compute, ComputePhase& phase, const data::Batch& batch,
                                     StepContext context, int shard);

// On the other ranks: waits until that rank has said what went wrong, and ends with it.
[[noreturn]] void wait_for_explanation(World& world, Rank rank);

}  // namespace echelon
