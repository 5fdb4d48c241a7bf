#include "registry/archive.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.h"
#include "registry/index.h"
#include "registry/model_diff.h"
#include "registry/word_planes.h"
#include "tests/support/says.h"
#include "tests/support/temp_dir.h"
#include "track/checkpoint.h"

namespace echelon {
namespace {

std::vector<std::byte> bytes_of(const std::vector<float>& numbers) {
  const auto bytes = std::as_bytes(std::span(numbers));
  return {bytes.begin(), bytes.end()};
}

TEST(WordPlanes, GiveBackEveryBit) {
  std::mt19937 random(7);
  for (const std::size_t size : {0u, 1u, 3u, 4u, 5u, 1000u, 4099u}) {
    std::vector<std::byte> first(size), second(size);
    for (auto* v : {&first, &second})
      for (std::byte& b : *v) b = static_cast<std::byte>(random());
    EXPECT_EQ(unpack_words(pack_words(second, {}), {}, size), second);
    EXPECT_EQ(unpack_words(pack_words(second, first), first, size), second);
  }
}

TEST(WordPlanes, NumbersThatChangeLittleBecomeSmall) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 0.1f);
  std::vector<float> first(100'000), second;
  for (float& n : first) n = normal(random);
  second = first;
  for (float& n : second) n += 1e-4f * normal(random);
  const std::size_t plain = 4 * first.size();
  EXPECT_LT(pack_words(bytes_of(second), bytes_of(first)).size(), plain * 55 / 100);
  EXPECT_LT(pack_words(bytes_of(first), bytes_of(first)).size(), plain / 100);
}

TEST(WordPlanes, DamageIsFoundOrGivesOtherBytesOfTheRightSize) {
  const std::vector<std::byte> bytes = bytes_of(std::vector<float>(100, 1.5f));
  std::vector<std::byte> packed = pack_words(bytes, {});
  EXPECT_THROW(unpack_words(packed, {}, bytes.size() + 4), BadInput);
  EXPECT_THROW(unpack_words(std::span(packed).first(packed.size() / 2), {}, bytes.size()), BadInput);
  EXPECT_THROW(unpack_words({}, {}, 8), BadInput);
}

class Archive : public ::testing::Test {
 protected:
  Archive() : disk(make_real_disk()), run(create_run(*disk, dir.path(), "demo", "")) {}
  // As training moves: each step a little further.
  void save(std::int64_t step, double score) {
    std::normal_distribution<float> normal(0, 0.001f);
    for (float& w : weights) w += normal(random);
    for (float& s : state) s = 0.9f * s + normal(random);
    const TensorView w{"w", DType::f32, Shape{100, 50}, std::as_bytes(std::span(weights))};
    const TensorView s{"s", DType::f32, Shape{100, 50}, std::as_bytes(std::span(state))};
    TrainingPosition position;
    position.step = step;
    position.score = score;
    write_checkpoint(*disk, run.checkpoints(), position, std::span(&w, 1), std::span(&s, 1));
    for (const char* name : {model_file, state_file, manifest_file})
      saved[step][name] = read_file(*disk, fmt::format("{}/step-{}/{}", run.checkpoints(), step, name), 1u << 30);
  }
  test::TempDir dir;
  std::unique_ptr<Disk> disk;
  RunFolder run;
  std::mt19937 random{3};
  std::vector<float> weights = std::vector<float>(5000, 0.1f), state = std::vector<float>(5000);
  std::map<std::int64_t, SnapshotFiles> saved;
};

TEST_F(Archive, TwentyCheckpointsComeBackBitByBitFromLessSpace) {
  for (int i = 1; i <= 20; ++i) save(10 * i, i == 7 ? 2 : 1);
  const ArchiveResult result = archive_checkpoints(*disk, run);
  EXPECT_EQ(result.snapshots, 18);  // the newest and the best stay as they are, and are not stored twice
  EXPECT_EQ(result.removed.size(), 18u);
  EXPECT_EQ(list_checkpoints(*disk, run.checkpoints()).size(), 2u);
  EXPECT_LT(static_cast<double>(result.archived), 0.9 * static_cast<double>(result.plain));
  for (const auto& [step, files] : saved) {
    if (step != 70 && step != 200) {
      EXPECT_EQ(read_archived(*disk, run, step), files);
    }
    restore_checkpoint(*disk, run, step);
    EXPECT_EQ(open_checkpoint(*disk, fmt::format("{}/step-{}", run.checkpoints(), step)).manifest.position.step, step);
  }
  EXPECT_EQ(list_checkpoints(*disk, run.checkpoints()).size(), 20u);
}

TEST_F(Archive, StoresEverySecondOneWhereTrainingMakesTheOthersAgain) {
  for (int i = 1; i <= 20; ++i) save(10 * i, i == 7 ? 2 : 1);
  std::vector<std::pair<std::int64_t, std::int64_t>> asked;
  const Retrain retrain = [&](std::int64_t from, const SnapshotFiles& files, std::int64_t to) {
    EXPECT_EQ(files, saved[from]);
    asked.emplace_back(from, to);
    return std::optional(saved[to]);
  };
  const ArchiveResult result = archive_checkpoints(*disk, run, retrain);
  EXPECT_EQ(result.snapshots, 18);
  EXPECT_EQ(result.retrained, 9);
  EXPECT_EQ(asked.size(), 9u);  // each was tried before its checkpoint was removed
  EXPECT_LT(static_cast<double>(result.archived), 0.5 * static_cast<double>(result.plain));
  for (const auto& [step, files] : saved)
    if (step != 70 && step != 200) {
      EXPECT_EQ(read_archived(*disk, run, step, retrain), files) << step;
    }
  EXPECT_EQ(asked.size(), 18u);
  const std::int64_t one = asked.front().second;
  EXPECT_TRUE(test::says(test::complaint_of([&] { read_archived(*disk, run, one); }), "--restore"));
  const Retrain wrong = [&](std::int64_t, const SnapshotFiles& files, std::int64_t) { return std::optional(files); };
  EXPECT_TRUE(test::says(test::complaint_of([&] { read_archived(*disk, run, one, wrong); }), "gave another"));
  const Retrain none = [&](std::int64_t, const SnapshotFiles&, std::int64_t) { return std::optional<SnapshotFiles>(); };
  EXPECT_TRUE(test::says(test::complaint_of([&] { read_archived(*disk, run, one, none); }), "no checkpoint at step"));
}

TEST_F(Archive, StoresWhatTrainingDoesNotMakeAgain) {
  for (int i = 1; i <= 6; ++i) save(10 * i, 1);
  int asked = 0;
  const ArchiveResult result =
      archive_checkpoints(*disk, run, [&](std::int64_t, const SnapshotFiles& files, std::int64_t) {
        ++asked;
        return std::optional(files);  // other bits than those of the later one
      });
  EXPECT_EQ(asked, 1);  // it would not be different with the next
  EXPECT_EQ(result.retrained, 0);
  EXPECT_GE(result.not_retrained, 20);
  for (const std::int64_t step : result.removed) EXPECT_EQ(read_archived(*disk, run, step), saved[step]);
}

TEST_F(Archive, GoesOnWhereItEnded) {
  save(10, 1), save(20, 2), save(30, 1), save(40, 1);
  EXPECT_EQ(archive_checkpoints(*disk, run).removed, (std::vector<std::int64_t>{10, 30}));
  save(50, 3);
  // The best of before is none any more: it goes between two that are there.
  EXPECT_EQ(archive_checkpoints(*disk, run).removed, (std::vector<std::int64_t>{20, 40}));
  for (const std::int64_t step : {10, 20, 30, 40}) EXPECT_EQ(read_archived(*disk, run, step), saved[step]);
}

TEST_F(Archive, WhatARegisteredModelNeedsStaysWhoeverTidiesUp) {
  for (int i = 1; i <= 5; ++i) save(10 * i, i);
  Labels labels;
  labels.versions.push_back({.model = "digits", .version = 1, .stage = "production", .step = 20});
  write_labels(*disk, run, labels);
  prune_checkpoints(*disk, run.checkpoints(), 50, 1, true);
  const auto steps = [&] {
    std::vector<std::int64_t> all;
    for (const CheckpointEntry& e : list_checkpoints(*disk, run.checkpoints())) all.push_back(e.step);
    return all;
  };
  EXPECT_EQ(steps(), (std::vector<std::int64_t>{50, 20}));
  save(60, 9);
  EXPECT_EQ(archive_checkpoints(*disk, run).removed, (std::vector<std::int64_t>{50}));
  const std::string message = test::complaint_of([&] { throw_away(*disk, dir.path(), "demo-1"); });
  EXPECT_NE(message.find("digits@1"), std::string::npos) << message;
  labels.versions[0].stage = "archived";
  write_labels(*disk, run, labels);
  throw_away(*disk, dir.path(), "demo-1");
}

TEST_F(Archive, DamageIsNamedAndNothingIsRestored) {
  save(10, 1), save(20, 1), save(30, 1), save(40, 2);
  archive_checkpoints(*disk, run);
  const std::string path = archive_folder(run) + "/step-20.snapshot";
  std::vector<std::byte> bytes = read_file(*disk, path, 1u << 30);
  for (const std::size_t at : {std::size_t{2}, std::size_t{20}, bytes.size() / 2, bytes.size() - 1}) {
    std::vector<std::byte> damaged = bytes;
    damaged[at] ^= std::byte{64};
    write_file_atomically(*disk, path, damaged);
    EXPECT_THROW(read_archived(*disk, run, 30), BadInput) << at;  // which differs from it
    EXPECT_EQ(read_archived(*disk, run, 10), saved[10]);
  }
  write_file_atomically(*disk, path, std::span(bytes).first(bytes.size() / 3));
  EXPECT_THROW(restore_checkpoint(*disk, run, 20), BadInput);
}

TEST_F(Archive, ACheckpointIsNotRemovedForASnapshotThatIsAnother) {
  for (const std::int64_t step : {1, 2, 3}) save(step, 0.1 * static_cast<double>(step));
  archive_checkpoints(*disk, run);
  const std::string path = restore_checkpoint(*disk, run, 1), snapshot = archive_folder(run) + "/step-1.snapshot";
  std::vector<std::byte> packed = read_file(*disk, snapshot, 1u << 30);
  packed.back() ^= std::byte{1};
  write_file_atomically(*disk, snapshot, packed);
  EXPECT_THROW(archive_checkpoints(*disk, run), BadInput);
  EXPECT_NO_THROW(open_checkpoint(*disk, path));
}

TEST_F(Archive, WhatClaimsToUnpackToFarMoreThanItIsIsNotUnpacked) {
  const std::size_t many = 64u << 20;
  const SnapshotFiles zeros{{model_file, std::vector<std::byte>(many)}};
  const std::vector<std::byte> packed = pack_snapshot(1, zeros, -1, nullptr);
  ASSERT_LT(packed.size(), many / 2000);
  EXPECT_TRUE(test::says(test::complaint_of([&] { unpack_snapshot(packed, nullptr, "bomb"); }), "claim to unpack"));
}

TEST_F(Archive, ADifferenceOfModelsNamesTensorsShapesAndDistance) {
  const auto file = [&](const std::string& name, std::vector<float> numbers, Shape shape, const char* tensor) {
    const TensorView v{tensor, DType::f32, shape, std::as_bytes(std::span(numbers))};
    write_safetensors(*disk, dir.path(name), std::span(&v, 1));
    return SafetensorsFile(*disk, dir.path(name));
  };
  SafetensorsFile a = file("a", {3, 4}, Shape{2}, "w"), b = file("b", {3, 4}, Shape{2}, "w"),
                  c = file("c", {3, 0}, Shape{2}, "w"), d = file("d", {3, 4}, Shape{1, 2}, "w"),
                  e = file("e", {3, 4}, Shape{2}, "v");
  EXPECT_TRUE(compare_weights(a, b).same_weights);
  const ModelDifference moved = compare_weights(a, c);
  EXPECT_TRUE(moved.same_architecture);
  EXPECT_FALSE(moved.same_weights);
  EXPECT_DOUBLE_EQ(moved.distance, 0.8);
  EXPECT_DOUBLE_EQ(moved.tensors[0].cosine, 0.6);
  EXPECT_FALSE(compare_weights(a, d).same_architecture);
  EXPECT_EQ(compare_weights(a, e).tensors.size(), 2u);
}

}  // namespace
}  // namespace echelon
