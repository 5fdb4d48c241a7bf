#include "track/checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/faulty_disk.h"
#include "tests/support/power_loss_disk.h"
#include "tests/support/says.h"
#include "tests/support/temp_dir.h"
#include "track/weights_hash.h"

namespace echelon {
namespace {

using test::Fault;
using test::says;
namespace fs = std::filesystem;

// A tiny training: weights and state that are functions of the step.
struct Training {
  Tensor weight{DType::f32, {9, 31}}, bias{DType::f32, {5}}, momentum{DType::f32, {9, 31}};
  explicit Training(std::int64_t step) {
    for (auto* t : {&weight, &bias, &momentum})
      for (std::int64_t i = 0; i < t->elements(); ++i) t->as<float>()[i] = static_cast<float>(step * 1000 + i);
  }
  static TensorView view(const char* name, const Tensor& t) { return {name, t.dtype(), t.shape(), t.bytes()}; }
  std::vector<TensorView> weights() const { return {view("weight", weight), view("bias", bias)}; }
  std::vector<TensorView> state() const { return {view("momentum", momentum)}; }
};

TrainingPosition position(std::int64_t step, std::optional<double> score = {}) {
  return {.step = step,
          .epoch = 2,
          .cursor = 640,
          .seed = ~0ull,
          .model = "m",
          .data = "d",
          .recipe = "r",
          .score = score,
          .extra = {{"lr", 0.1}, {"note", "µ"}}};
}

SavedCheckpoint save(Disk& disk, const std::string& parent, std::int64_t step, std::optional<double> score = {}) {
  const Training t(step);
  return write_checkpoint(disk, parent, position(step, score), t.weights(), t.state());
}

void expect_is(Checkpoint& c, std::int64_t step) {
  const Training t(step);
  EXPECT_EQ(c.manifest.position.step, step);
  EXPECT_EQ(weights_hash(c.weights), weights_hash(t.weights()));
  EXPECT_TRUE(std::ranges::equal(c.state.read("momentum").bytes(), t.momentum.bytes()));
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void put_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::vector<std::string> names(Disk& disk, const std::string& parent) { return disk.list(parent); }

TEST(Checkpoint, ReadsBackWhatWasSaved) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  const auto saved = save(*disk, dir.path("c"), 7, 0.97);
  EXPECT_EQ(saved.path, dir.path("c/step-7"));
  Checkpoint c = open_checkpoint(*disk, saved.path);
  expect_is(c, 7);
  EXPECT_EQ(c.manifest.position.epoch, 2);
  EXPECT_EQ(c.manifest.position.cursor, 640);
  EXPECT_EQ(c.manifest.position.seed, ~0ull);
  EXPECT_EQ(c.manifest.position.model + c.manifest.position.data + c.manifest.position.recipe, "mdr");
  EXPECT_EQ(c.manifest.position.score, 0.97);
  EXPECT_EQ(c.manifest.position.extra, position(7).extra);
  EXPECT_EQ(c.manifest.weights_sha256, weights_hash(Training(7).weights()));
  EXPECT_EQ(names(*disk, dir.path("c")), std::vector<std::string>{"step-7"});
}

TEST(Checkpoint, SavingTheSameStepAgainReplacesIt) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  save(*disk, dir.path(), 7, 0.5);
  save(*disk, dir.path(), 7, 0.6);
  EXPECT_EQ(open_checkpoint(*disk, dir.path("step-7")).manifest.position.score, 0.6);
  EXPECT_EQ(names(*disk, dir.path()), std::vector<std::string>{"step-7"});
}

TEST(Checkpoint, LatestIsByNumberNotByName) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  for (const int step : {9, 100, 20}) save(*disk, dir.path(), step);
  for (const char* other : {"step-", "step-007", "step-1x", "step--4", "other", "step-999999999999999999999"})
    fs::create_directory(dir.path(other));
  const auto found = latest_valid(*disk, dir.path());
  ASSERT_TRUE(found.found);
  EXPECT_EQ(found.found->manifest.position.step, 100);
  EXPECT_TRUE(found.skipped.empty());
}

TEST(Checkpoint, NoneIsFoundWhereThereIsNone) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  EXPECT_FALSE(latest_valid(*disk, dir.path()).found);
  EXPECT_FALSE(latest_valid(*disk, dir.path("absent")).found);
  EXPECT_THROW(open_checkpoint(*disk, dir.path("absent")), BadInput);
}

class DamagedCheckpoint : public testing::TestWithParam<const char*> {
 protected:
  DamagedCheckpoint() {
    save(*disk_, dir_.path(), 1);
    save(*disk_, dir_.path(), 2);
    file_ = dir_.path("step-2/") + GetParam();
    whole_ = bytes_of(file_);
  }
  // The damaged one is refused with a message that names the file, and the one before it loads.
  void expect_refused(const std::string& damage) {
    auto search = latest_valid(*disk_, dir_.path());
    ASSERT_TRUE(search.found) << damage;
    ASSERT_EQ(search.skipped.size(), 1u) << damage;
    EXPECT_TRUE(says(search.skipped[0], file_));
    expect_is(*search.found, 1);
  }
  const test::TempDir dir_;
  const std::unique_ptr<Disk> disk_ = make_real_disk();
  std::string file_, whole_;
};

TEST_P(DamagedCheckpoint, TruncatedAnywhereIsNeverAccepted) {
  for (std::size_t n = 0; n < whole_.size(); n += n + 512 < whole_.size() ? 512 : whole_.size() - 1 - n) {
    put_bytes(file_, whole_.substr(0, n));
    expect_refused(fmt::format("truncated to {}", n));
    if (n == whole_.size() - 1) break;
  }
  put_bytes(file_, whole_ + "x");
  expect_refused("one byte more");
}

TEST_P(DamagedCheckpoint, OneFlippedBitIsNeverAccepted) {
  for (std::size_t i = 0; i<whole_.size(); i += whole_.size()> 900 ? 7 : 1) {
    std::string bytes = whole_;
    bytes[i] = static_cast<char>(bytes[i] ^ (1 << (i % 8)));
    put_bytes(file_, bytes);
    expect_refused(fmt::format("bit {} of byte {}", i % 8, i));
  }
}

TEST_P(DamagedCheckpoint, WithoutAFileIsNeverAccepted) {
  fs::remove(file_);
  auto search = latest_valid(*disk_, dir_.path());
  ASSERT_TRUE(search.found);
  expect_is(*search.found, 1);
  ASSERT_EQ(search.skipped.size(), 1u);
  EXPECT_TRUE(says(search.skipped[0], GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Files, DamagedCheckpoint, testing::Values(model_file, state_file, manifest_file),
                         [](const auto& info) { return std::string(info.param).substr(0, 5); });

// The manifest is small: every single bit of it.
TEST(Checkpoint, EveryBitOfAManifestCounts) {
  Manifest manifest{.position = position(120, 1e25), .weights_sha256 = sha256_hex("w"), .files = {}};
  manifest.files["model.safetensors"] = {12, sha256_hex("x")};
  const std::string text = to_text(manifest);
  EXPECT_EQ(to_text(parse_manifest(text, "m")), text);
  for (std::size_t i = 0; i < text.size() * 8; ++i) {
    std::string flipped = text;
    flipped[i / 8] = static_cast<char>(flipped[i / 8] ^ (1 << (i % 8)));
    EXPECT_THROW(parse_manifest(flipped, "m"), BadInput) << flipped;
  }
}

TEST(Checkpoint, ResumingAnotherTrainingNamesEveryDifference) {
  TrainingPosition other = position(1);
  EXPECT_NO_THROW(expect_same_training(position(7), other, "c"));
  other.model = "m2", other.seed = 5, other.recipe = "another";
  const std::string text = test::complaint_of([&] { expect_same_training(position(7), other, "runs/a/step-7"); });
  EXPECT_TRUE(says(text, "runs/a/step-7"));
  EXPECT_TRUE(says(text, "model: the checkpoint has m, this run m2"));
  EXPECT_TRUE(says(text, "seed: the checkpoint has 18446744073709551615, this run 5"));
  EXPECT_TRUE(says(text, "settings of the recipe: "));
  EXPECT_EQ(text.find("data:"), std::string::npos);
}

TEST(Checkpoint, WhereWorkersHaveTheirOwnStateAsManyMustGoOn) {
  TrainingPosition saved = position(7), other = position(7);
  other.workers = 2;
  EXPECT_NO_THROW(expect_same_training(saved, other, "c"));  // any number may
  saved.workers = 3;
  EXPECT_TRUE(
      says(test::complaint_of([&] { expect_same_training(saved, other, "c"); }), "checkpoint has 3, this run 2"));
  other.workers = 3;
  EXPECT_NO_THROW(expect_same_training(saved, other, "c"));
  const Manifest manifest{.position = saved, .weights_sha256 = sha256_hex("w"), .files = {}};
  EXPECT_EQ(parse_manifest(to_text(manifest), "m").position.workers, 3);
}

TEST(Checkpoint, ACheckpointUnderAnotherNameIsNotTheLatest) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  save(*disk, dir.path(), 1);
  save(*disk, dir.path(), 2);
  fs::rename(dir.path("step-1"), dir.path("step-9"));
  const auto search = latest_valid(*disk, dir.path());
  ASSERT_TRUE(search.found);
  EXPECT_EQ(search.found->manifest.position.step, 2);
  ASSERT_EQ(search.skipped.size(), 1u);
  EXPECT_TRUE(says(search.skipped[0], "manifest is that of step 1"));
}

// Saves step 2 (or step 1 once more) beside step 1, failing at every single call, in every way.
class FailingSave : public testing::TestWithParam<std::tuple<Fault, int>> {};

TEST_P(FailingSave, LeavesALoadableCheckpoint) {
  const auto [fault, step] = GetParam();
  const auto real = make_real_disk();
  bool ended = false;
  for (std::size_t call = 0; !ended; ++call) {
    const test::TempDir dir;
    save(*real, dir.path(), 1);
    test::FaultyDisk disk(*real);
    disk.fail_at(call, fault);
    bool failed = false;
    try {
      save(disk, dir.path(), step);
    } catch (const DiskError&) {
      failed = true;
    }
    ended = disk.calls() <= call;
    EXPECT_EQ(failed, !ended);
    auto search = latest_valid(*real, dir.path());
    ASSERT_TRUE(search.found) << "failed at call " << call;
    EXPECT_TRUE(search.skipped.empty()) << search.skipped[0];
    expect_is(*search.found, search.found->manifest.position.step);
    EXPECT_TRUE(!ended || search.found->manifest.position.step == step);

    // And the next save, on a disk that works again, puts everything right.
    save(*real, dir.path(), 3);
    prune_checkpoints(*real, dir.path(), 3, 1, false);
    EXPECT_EQ(names(*real, dir.path()), std::vector<std::string>{"step-3"});
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, FailingSave,
                         testing::Combine(testing::Values(Fault::full, Fault::broken, Fault::torn, Fault::dead),
                                          testing::Values(1, 2)));

// The same with the power going out instead: what was not synced is lost.
TEST(Checkpoint, PowerLossAtAnyCallLeavesALoadableCheckpoint) {
  const auto real = make_real_disk();
  for (const int step : {1, 2}) {
    bool ended = false;
    for (std::size_t call = 0; !ended; ++call) {
      const test::TempDir dir;
      test::PowerLossDisk powered(*real);
      powered.sync_directory(dir.path());
      save(powered, dir.path("run/c"), 1);
      powered.sync_directory(dir.path());
      test::FaultyDisk disk(powered);
      disk.fail_at(call, Fault::dead);
      bool saved = true;
      try {
        save(disk, dir.path("run/c"), step);
        prune_checkpoints(disk, dir.path("run/c"), step, 1, false);
      } catch (const DiskError&) {
        saved = false;
      }
      ended = disk.calls() <= call;
      powered.lose_power();
      auto search = latest_valid(*real, dir.path("run/c"));
      ASSERT_TRUE(search.found) << "power lost after call " << call << " of saving step " << step;
      EXPECT_TRUE(search.skipped.empty()) << search.skipped[0];
      EXPECT_TRUE(!saved || search.found->manifest.position.step == step) << "saved, but lost with the power";
    }
  }
}

TEST(Prune, KeepsTheLastAndTheBest) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  const std::vector<std::pair<int, double>> saves{{10, 0.5}, {20, 0.9}, {30, 0.7}, {40, 0.8}, {50, 0.6}};
  for (const auto& [step, score] : saves) {
    save(*disk, dir.path(), step, score);
    prune_checkpoints(*disk, dir.path(), step, 2, true);
  }
  EXPECT_EQ(names(*disk, dir.path()), (std::vector<std::string>{"step-20", "step-40", "step-50"}));
  EXPECT_EQ(best_valid(*disk, dir.path()).found->manifest.position.step, 20);
  EXPECT_EQ(latest_valid(*disk, dir.path()).found->manifest.position.step, 50);
  prune_checkpoints(*disk, dir.path(), 50, 2, false);
  EXPECT_EQ(names(*disk, dir.path()), (std::vector<std::string>{"step-40", "step-50"}));
}

TEST(Prune, OfEqualScoresTheLowestLossIsTheBestThenTheEarliest) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  const std::vector<std::tuple<int, double, double>> saves{
      {10, 0.9, 0.5}, {20, 0.9, 0.3}, {30, 0.9, 0.4}, {40, 0.9, 0.3}};
  for (const auto& [step, score, loss] : saves) {
    TrainingPosition at = position(step, score);
    at.loss = loss;
    const Training t(step);
    write_checkpoint(*disk, dir.path(), at, t.weights(), t.state());
    prune_checkpoints(*disk, dir.path(), step, 1, true);
  }
  EXPECT_EQ(names(*disk, dir.path()), (std::vector<std::string>{"step-20", "step-40"}));
  const Checkpoint best = *best_valid(*disk, dir.path()).found;
  EXPECT_EQ(best.manifest.position.step, 20);
  EXPECT_EQ(best.manifest.position.loss, 0.3);
}

TEST(Prune, NeverRemovesWhatWasJustSavedForOneThatIsAheadOfIt) {
  // step-50 is damaged, so training went on from 30 and is at 40: 50 must not count as one of the last.
  const test::TempDir dir;
  const auto disk = make_real_disk();
  for (const int step : {20, 30, 50, 40}) save(*disk, dir.path(), step);
  fs::remove(dir.path("step-50/manifest.json"));
  prune_checkpoints(*disk, dir.path(), 40, 1, true);
  EXPECT_EQ(latest_valid(*disk, dir.path()).found->manifest.position.step, 40);
}

TEST(Prune, WithoutScoresTheBestIsTheLatest) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  for (const int step : {1, 2, 3}) save(*disk, dir.path(), step);
  EXPECT_EQ(best_valid(*disk, dir.path()).found->manifest.position.step, 3);
}

}  // namespace
}  // namespace echelon
