#pragma once
// Which samples step t of a run uses: pure arithmetic, from the step alone, so that resuming needs no saved state.
//
// An epoch is a sequence of batches. Its last batch is smaller when the batch size does not divide the epoch (or is
// left out, if so asked), and never holds samples of the next epoch. The batch size may change at given steps; the next
// batch then begins at the sample after the last one used. A batch of n samples is split over S logical shards as
// evenly as possible: shard s has [s*n/S, (s+1)*n/S).

#include <cstdint>
#include <vector>

namespace echelon::data {

// A half-open range: of positions in an epoch, or of shards.
struct IndexRange {
  std::uint64_t first = 0, count = 0;
  bool operator==(const IndexRange&) const = default;
};

IndexRange shard_samples(const IndexRange& batch, std::uint64_t shard, std::uint64_t shards);

// From step `step` on, batches of `batch` samples.
struct BatchPhase {
  std::uint64_t step = 0, batch = 1;
};

struct Cursor {
  std::uint32_t epoch = 0;
  std::uint64_t batch = 0;  // how many batches of this epoch came before
  IndexRange samples;       // positions in this epoch
  bool operator==(const Cursor&) const = default;
};

class BatchSequence {
 public:
  // `phases` ascend by step and begin with step 0. BadInput if the data set is empty, a batch is 0, or (with
  // `drop_partial`) a batch is larger than the data set.
  BatchSequence(std::uint64_t samples, std::vector<BatchPhase> phases, bool drop_partial = false);
  BatchSequence(std::uint64_t samples, std::uint64_t batch) : BatchSequence(samples, {{0, batch}}) {}

  Cursor at(std::uint64_t step) const;
  // The number of steps before the first step of `epoch`: the length of a run of that many epochs.
  std::uint64_t steps_before(std::uint32_t epoch) const;
  std::uint64_t largest_batch() const;

 private:
  // Where a phase begins: the cursor before its first step.
  struct Start {
    BatchPhase phase;
    std::uint32_t epoch;
    std::uint64_t batch, position;
  };
  std::uint64_t steps_from(std::uint64_t position, std::uint64_t batch) const;  // to the end of the epoch
  Cursor advance(const Start& from, std::uint64_t steps) const;

  std::uint64_t samples_;
  bool drop_partial_;
  std::vector<Start> starts_;
};

}  // namespace echelon::data
