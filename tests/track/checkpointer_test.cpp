#include "track/checkpointer.h"

#include <gtest/gtest.h>

#include "tests/support/faulty_disk.h"
#include "tests/support/says.h"
#include "tests/support/temp_dir.h"
#include "track/weights_hash.h"

namespace echelon {
namespace {

using IfBusy = Checkpointer::IfBusy;

TrainingPosition at(std::int64_t step) {
  TrainingPosition m;
  m.step = step;
  return m;
}

// One weight whose elements all are `value`.
struct Weights {
  Tensor tensor{DType::f32, {1000}};
  explicit Weights(float value) { set(value); }
  void set(float value) { std::ranges::fill(tensor.as<float>(), value); }
  std::vector<TensorView> views() const { return {{"w", DType::f32, tensor.shape(), tensor.bytes()}}; }
};

// A disk that stands still until it is let go, so that a test can look at what happens meanwhile.
class HeldDisk : public test::FaultyDisk {
 public:
  using FaultyDisk::FaultyDisk;
  bool exists(const std::string& path) override { return released_.wait(), FaultyDisk::exists(path); }
  void let_go() { release_.set_value(); }

 private:
  std::promise<void> release_;
  std::shared_future<void> released_ = release_.get_future().share();
};

TEST(Checkpointer, SavesWhatTheWeightsWereWhenItWasAsked) {
  const test::TempDir dir;
  const auto real = make_real_disk();
  const auto clock = make_real_clock();
  HeldDisk disk(*real);
  Checkpointer checkpointer(disk, *clock, make_background("checkpoint", 1), dir.path(), {});
  Weights w(1);
  const std::string expected = weights_hash(w.views());
  checkpointer.save(at(5), w.views(), {}, IfBusy::skip);
  w.set(2);  // training goes on before a single byte is written
  EXPECT_TRUE(checkpointer.results().empty());
  disk.let_go();
  const auto results = checkpointer.finish();
  ASSERT_EQ(results.size(), 1u);
  EXPECT_TRUE(results[0].saved) << results[0].warning;
  EXPECT_EQ(results[0].step, 5);
  EXPECT_EQ(results[0].weights_sha256, expected);
  auto search = latest_valid(*real, dir.path());
  ASSERT_TRUE(search.found);
  EXPECT_EQ(weights_hash(search.found->weights), expected);
}

TEST(Checkpointer, LeavesOneOutRatherThanMakeTrainingWait) {
  const test::TempDir dir;
  const auto real = make_real_disk();
  const auto clock = make_real_clock();
  HeldDisk disk(*real);
  Checkpointer checkpointer(disk, *clock, make_background("checkpoint", 1), dir.path(), {});
  Weights w(1);
  checkpointer.save(at(1), w.views(), {}, IfBusy::skip);
  checkpointer.save(at(2), w.views(), {}, IfBusy::skip);  // would wait for ever if it waited
  const auto results = checkpointer.results();
  ASSERT_EQ(results.size(), 1u);
  EXPECT_FALSE(results[0].saved);
  EXPECT_TRUE(test::says(results[0].warning, "step 2 left out"));
  disk.let_go();
  checkpointer.save(at(3), w.views(), {}, IfBusy::wait);  // the last one of a run must not be left out
  EXPECT_EQ(checkpointer.finish().size(), 2u);
  EXPECT_EQ(latest_valid(*real, dir.path()).found->manifest.position.step, 3);
}

TEST(Checkpointer, AFullDiskIsAWarningAndTheOldOneStaysValid) {
  const test::TempDir dir;
  const auto real = make_real_disk();
  const auto clock = make_real_clock();
  test::FaultyDisk disk(*real);
  Checkpointer checkpointer(disk, *clock, make_background("checkpoint", 1), dir.path(), {.keep_last = 1});
  Weights w(1);
  checkpointer.save(at(1), w.views(), {}, IfBusy::wait);
  ASSERT_TRUE(checkpointer.finish()[0].saved);
  std::size_t call = 0;
  for (bool ended = false; !ended; ++call) {
    disk.fail_at(call, test::Fault::torn);
    checkpointer.save(at(2), w.views(), {}, IfBusy::wait);
    const auto results = checkpointer.finish();
    ended = disk.calls() <= call;
    ASSERT_EQ(results.size(), 1u);
    EXPECT_EQ(results[0].warning.empty(), ended) << results[0].warning;
    if (!results[0].saved) {
      EXPECT_TRUE(test::says(results[0].warning, "No space left on device"));
    }
    ASSERT_TRUE(latest_valid(*real, dir.path()).found) << call;
    real->remove_all(dir.path("step-2"));
    if (!real->exists(dir.path("step-1"))) {  // it was pruned because step 2 had been saved: put it back
      disk.work();
      checkpointer.save(at(1), w.views(), {}, IfBusy::wait);
      checkpointer.finish();
    }
  }
  EXPECT_GT(call, 20u);
}

TEST(Checkpointer, AHalfWrittenCheckpointDoesNotKeepTheDiskFull) {
  const test::TempDir dir;
  const auto real = make_real_disk();
  const auto clock = make_real_clock();
  test::FaultyDisk disk(*real);
  Checkpointer checkpointer(disk, *clock, make_inline_background(), dir.path(), {});
  Weights w(1);
  disk.fail_at(5, test::Fault::torn);
  checkpointer.save(at(2), w.views(), {}, IfBusy::wait);
  EXPECT_FALSE(checkpointer.finish()[0].saved);
  EXPECT_TRUE(real->list(dir.path()).empty());
}

TEST(Checkpointer, IsNotPublishedBeforeWhatItWaitsFor) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  const auto clock = make_real_clock();
  Checkpointer checkpointer(*disk, *clock, make_background("checkpoint", 1), dir.path(), {});
  Weights w(1);
  std::promise<void> metrics;
  checkpointer.save(at(1), w.views(), {}, IfBusy::wait, metrics.get_future().share());
  while (!disk->exists(dir.path("step-1.new/manifest.json"))) {
  }
  EXPECT_FALSE(disk->exists(dir.path("step-1")));
  metrics.set_value();
  EXPECT_TRUE(checkpointer.finish()[0].saved);
}

TEST(Checkpointer, KeepsTheMemoryOfTheCopy) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  const auto clock = make_real_clock();
  Checkpointer checkpointer(*disk, *clock, make_background("checkpoint", 1), dir.path(), {.keep_last = 2});
  Weights w(0);
  for (int step = 1; step <= 20; ++step) {
    w.set(static_cast<float>(step));
    checkpointer.save(at(step), w.views(), w.views(), IfBusy::wait);
  }
  for (const auto& r : checkpointer.finish()) EXPECT_TRUE(r.saved) << r.warning;
  EXPECT_EQ(disk->list(dir.path()), (std::vector<std::string>{"step-19", "step-20"}));
  auto found = latest_valid(*disk, dir.path()).found;
  ASSERT_TRUE(found);
  EXPECT_EQ(found->state.read("w").as<float>()[999], 20.0f);
}

}  // namespace
}  // namespace echelon
