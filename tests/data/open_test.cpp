#include "data/open.h"

#include "data/kinds.h"
#include "tests/data/support.h"
#include "tests/support/source_path.h"

namespace echelon::data {
namespace {

using test::complaint_of;
using test::fixture_path;
using test::says;
using test::values;

Option option(bool v) { return {v, {}}; }
Option option(int v) { return {std::int64_t{v}, {}}; }
Option option(double v) { return {v, {}}; }
Option option(const char* v) { return {std::string(v), {}}; }
Option option(std::vector<Option> v) { return {std::move(v), {}}; }
Option option(Options v) { return {std::make_shared<Options>(std::move(v)), {}}; }

template <typename... Rest>
void put(Options& table, const std::string& key, auto value, Rest... rest) {
  table.items[key] = option(value);
  if constexpr (sizeof...(rest) > 0) put(table, rest...);
}

// table("kind", "csv", "path", "x.csv"): a recipe's [data].
template <typename... Items>
Options table(Items... items) {
  Options t;
  t.where = "data";
  put(t, items...);
  return t;
}

class Open : public testing::Test {
 protected:
  DatasetPtr open(const Options& t, const std::string& split = "train") {
    return open_dataset(*disk, t, split, places);
  }
  std::string complaint(const Options& t, const std::string& split = "train") {
    return complaint_of([&] { open(t, split); });
  }
  test::TempDir dir;
  std::unique_ptr<Disk> disk = make_real_disk();
  DataPlaces places{dir.path("data"), {dir.path("nothing"), source_path("share")}};
};

TEST_F(Open, EveryKindOpens) {
  std::filesystem::copy_file(fixture_path("cifar10.bin"), dir.path("test_batch.bin"));
  std::filesystem::copy_file(fixture_path("cifar100.bin"), dir.path("test.bin"));
  std::filesystem::create_directories(dir.path("pictures/red"));
  std::filesystem::copy_file(fixture_path("rgb.png"), dir.path("pictures/red/1.png"));
  test::write_bytes(dir.path("t.txt"), std::string(1000, 'a'));
  EXPECT_EQ(open(table("kind", "idx", "path", fixture_path("").c_str()))->size(), 5u);
  EXPECT_EQ(open(table("kind", "cifar10", "path", dir.path().c_str()), "test")->size(), 2u);
  EXPECT_EQ(open(table("kind", "cifar100", "path", dir.path().c_str(), "coarse", true), "test")->info().classes, 20);
  EXPECT_EQ(
      open(table("kind", "npy", "path", fixture_path("").c_str(), "x", "numbers_le_f4.npy", "y", "scalar_labels.npy"))
          ->info()
          .classes,
      3);
  EXPECT_EQ(open(table("kind", "npz", "path", fixture_path("deflated.npz").c_str()), "test")->size(), 2u);
  EXPECT_EQ(open(table("kind", "csv", "path", fixture_path("quoted.csv").c_str(), "ignore", "note"))->size(), 3u);
  EXPECT_EQ(
      open(table("kind", "images", "path", dir.path("pictures").c_str(), "size", 4, "channels", 1))->fields()[0].shape,
      (Shape{1, 4, 4}));
  EXPECT_EQ(open(table("kind", "tar", "path", fixture_path("shard_pax.tar").c_str()))->size(), 3u);
  EXPECT_EQ(open(table("kind", "text", "path", dir.path("t.txt").c_str(), "length", 10))->fields()[1].shape, Shape{10});
  EXPECT_EQ(open(table("kind", "synthetic", "make", "images", "shape", std::vector{option(3), option(8), option(8)}))
                ->fields()[0]
                .shape,
            (Shape{3, 8, 8}));
  EXPECT_EQ(open(table("kind", "digits"), "test")->size(), 1000u);
}

TEST_F(Open, EveryProblemIsToldAtOnceWithACure) {
  const auto text = complaint(table(
      "kind", "synthetic", "smaples", 5, "classes", "ten", "noise", -1, "transform",
      std::vector{option(table("kind", "flipp")), option(table("kind", "crop", "padd", 3)), option(table("most", 3))}));
  for (const char* part : {"data.smaples; did you mean 'samples'?", "data.classes must be", "data.noise must be",
                           "did you mean 'flip'?", "did you mean 'pad'?", "say which transform it is"})
    EXPECT_TRUE(says(text, part));
  EXPECT_TRUE(says(complaint(table("kind", "mnits")), "did you mean 'mnist'?"));
  EXPECT_TRUE(says(complaint(table("path", "x")), "data.kind is missing"));
  EXPECT_TRUE(says(complaint(table("kind", "csv")), "data.path is missing"));
  EXPECT_TRUE(says(complaint(table("kind", "npy", "path", ".", "y", "b.npy")), "data.y needs x beside it"));
}

TEST_F(Open, MissingDataSayHowToGetThem) {
  EXPECT_TRUE(says(complaint(table("kind", "mnist")), "get it with 'echelon data get mnist'"));
  std::filesystem::create_directories(dir.path("data/mnist"));
  EXPECT_TRUE(says(complaint(table("kind", "mnist")), "is damaged"));
  test::write_bytes(dir.path("data/mnist/train-images-idx3-ubyte"), "x");
  EXPECT_TRUE(says(complaint(table("kind", "mnist")), "expected 47040016 bytes, found 1"));
  EXPECT_TRUE(says(complaint(table("kind", "csv", "path", "/no/such.csv")), "/no/such.csv: there is no such file"));
  EXPECT_TRUE(says(complaint(table("kind", "npz", "path", "/tmp")), "/tmp: this is a directory"));
}

// Testing on what was trained on must not happen by omission.
TEST_F(Open, ASplitWithoutSamplesOfItsOwnIsRefused) {
  const auto csv = table("kind", "csv", "path", fixture_path("quoted.csv").c_str(), "ignore", "note");
  EXPECT_TRUE(says(complaint(csv, "test"), "keep some back with test = 0.1"));
  auto part = csv;
  part.items["holdout"] = option(0.34);
  EXPECT_EQ(open(part, "train")->size(), 2u);
  EXPECT_EQ(open(part, "test")->size(), 1u);
  EXPECT_TRUE(says(complaint(table("kind", "npz", "path", fixture_path("stored.npz").c_str(), "x", "x_train"), "test"),
                   "test = 0.1"));
  EXPECT_TRUE(
      says(complaint(table("kind", "tar", "path", fixture_path("shard_gnu.tar").c_str()), "test"), "test = 0.1"));
}

TEST_F(Open, TransformsAugmentTrainingOnly) {
  const auto t = table("kind", "digits", "limit", 10, "cache", true, "transform",
                       std::vector{option(table("kind", "crop", "size", 24, "pad", 1)),
                                   option(table("kind", "flip", "probability", 1.0)),
                                   option(table("kind", "normalise", "mean", 0.5, "std", 0.25))});
  const auto train = open(t), test = open(t, "test");
  EXPECT_EQ(train->size(), 10u);
  EXPECT_TRUE(train->info().random);
  EXPECT_EQ(test->size(), 1000u);
  EXPECT_FALSE(test->info().random);
  EXPECT_EQ(test->fields(), train->fields());
  EXPECT_EQ(test->fields()[0].shape, (Shape{1, 24, 24}));
  const auto plain = values<float>(*open(table("kind", "digits"), "test"), 5, 0), now = values<float>(*test, 5, 0);
  for (std::size_t y = 0; y < 24; ++y)
    for (std::size_t x = 0; x < 24; ++x) ASSERT_EQ(now[y * 24 + x], (plain[(y + 2) * 28 + x + 2] - 0.5f) * 4);
}

TEST_F(Open, ATextIsTestedOnAllOfItsRest) {
  test::write_bytes(dir.path("t.txt"), std::string(1000, 'a'));
  const auto t = table("kind", "text", "path", dir.path("t.txt").c_str(), "length", 9);
  EXPECT_TRUE(open(t)->info().random);
  EXPECT_FALSE(open(t, "test")->info().random);
  EXPECT_EQ(open(t, "test")->size(), 11u);
  EXPECT_TRUE(says(complaint(table("kind", "text", "path", "x", "streams", 3)), "needs windows"));
}

TEST_F(Open, ReadingOptionsTouchesNoFile) {
  const auto t = table("kind", "csv", "path", "/no/such/file.csv");
  Problems problems;
  OptionReader reader(t, problems);
  const DataSpec spec = read_data_spec(reader, places);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(spec.kind(), "csv");
  EXPECT_THROW(spec.open(*disk, "train"), BadInput);
}

}  // namespace
}  // namespace echelon::data
