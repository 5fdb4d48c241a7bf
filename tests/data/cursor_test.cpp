#include "data/cursor.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"

namespace echelon::data {
namespace {

// The same, counted step by step: the readable twin of the closed form.
struct StepByStep {
  std::uint64_t samples;
  std::vector<BatchPhase> phases;
  bool drop;
  std::uint64_t step = 0, position = 0, batch = 0;
  std::uint32_t epoch = 0;

  std::uint64_t size() const {
    std::uint64_t b = 0;
    for (const auto& p : phases)
      if (p.step <= step) b = p.batch;
    return b;
  }
  Cursor next() {
    const std::uint64_t b = size();
    if (position >= samples || (drop && samples - position < b)) position = 0, batch = 0, ++epoch;
    const Cursor c{epoch, batch, {position, std::min(b, samples - position)}};
    position += c.samples.count;
    if (drop && samples - position < b) position = samples;  // the rest is left out
    ++batch, ++step;
    return c;
  }
};

TEST(BatchSequence, EqualsCountingStepByStep) {
  const Stream random({.seed = 5});
  for (std::uint64_t trial = 0; trial < 300; ++trial) {
    std::uint64_t draw = trial * 100;
    const auto below = [&](std::uint32_t n) { return random.below(n, draw++); };
    const std::uint64_t samples = 1 + below(60);
    std::vector<BatchPhase> phases{{0, 1 + below(20)}};
    for (std::uint32_t more = below(4); more > 0; --more)
      phases.push_back({phases.back().step + 1 + below(30), 1 + below(20)});
    const bool drop = below(2) == 1;
    if (drop)
      for (auto& p : phases) p.batch = std::min(p.batch, samples);
    const BatchSequence sequence(samples, phases, drop);
    StepByStep slow{samples, phases, drop};
    std::uint32_t epoch = 0;
    for (std::uint64_t step = 0; step < 200; ++step) {
      const Cursor expected = slow.next();
      ASSERT_EQ(sequence.at(step), expected) << "trial " << trial << " step " << step;
      if (expected.epoch != epoch) {
        epoch = expected.epoch;
        ASSERT_EQ(sequence.steps_before(epoch), step) << "trial " << trial;
      }
    }
  }
}

TEST(BatchSequence, LastBatchOfAnEpochIsSmallerAndNeverReachesIntoTheNext) {
  const BatchSequence sequence(10, 4);
  EXPECT_EQ(sequence.at(2), (Cursor{0, 2, {8, 2}}));
  EXPECT_EQ(sequence.at(3), (Cursor{1, 0, {0, 4}}));
  EXPECT_EQ(sequence.steps_before(5), 15u);
}

TEST(BatchSequence, RefusesSizesThatCannotBe) {
  EXPECT_THROW(BatchSequence(0, 4), BadInput);
  EXPECT_THROW(BatchSequence(10, 0), BadInput);
  EXPECT_THROW(BatchSequence(3, {{0, 4}}, /*drop_partial=*/true), BadInput);
  EXPECT_THROW(BatchSequence(10, {{1, 4}}), BadInput);
  EXPECT_THROW(BatchSequence(10, {{0, 4}, {5, 2}, {5, 3}}), BadInput);
}

TEST(ShardSlice, CoversTheBatchInOrderAndEvenly) {
  for (std::uint64_t count = 0; count < 30; ++count)
    for (std::uint64_t shards = 1; shards < 12; ++shards) {
      std::uint64_t at = 100;
      for (std::uint64_t s = 0; s < shards; ++s) {
        const IndexRange slice = shard_samples({100, count}, s, shards);
        ASSERT_EQ(slice.first, at);
        ASSERT_GE(slice.count, count / shards);
        ASSERT_LE(slice.count, (count + shards - 1) / shards);
        at += slice.count;
      }
      ASSERT_EQ(at, 100 + count);
    }
}

}  // namespace
}  // namespace echelon::data
