#include "data/parts.h"

#include <algorithm>
#include <map>
#include <set>

#include "data/open.h"
#include "tests/data/support.h"

namespace echelon::data {
namespace {

using test::complaint_of;
using test::says;

// 100 rows a, 50 b, 11 c, in that order; the feature is the row's number.
std::string rows_of_three_classes() {
  std::string text = "x,y\n";
  int row = 0;
  for (const auto& [name, count] : {std::pair("a", 100), std::pair("b", 50), std::pair("c", 11)})
    for (int i = 0; i < count; ++i) text += fmt::format("{},{}\n", row++, name);
  return text;
}

class Parts : public testing::Test {
 protected:
  Parts() { test::write_bytes(dir.path("rows.csv"), rows_of_three_classes()); }

  DatasetPtr open(const std::string& split, std::map<std::string, Option> keys) {
    Options t;
    t.where = "data";
    t.items = std::move(keys);
    t.items.try_emplace("kind", Option{std::string("csv"), {}});
    t.items.try_emplace("path", Option{dir.path("rows.csv"), {}});
    return open_dataset(*disk, t, split, {});
  }
  std::set<int> rows(const DatasetPtr& d) {
    std::set<int> seen;
    Sample s(d->fields());
    for (std::uint64_t i = 0; i < d->size(); ++i) {
      d->get(i, {}, s.ref());
      seen.insert(static_cast<int>(s.field<float>(0)[0]));
    }
    return seen;
  }
  std::map<int, int> classes(const DatasetPtr& d) {
    std::map<int, int> count;
    for (std::uint64_t i = 0; i < d->size(); ++i) ++count[d->label(i)];
    return count;
  }
  static Option number(double v) { return {v, {}}; }
  static Option whole(int v) { return {std::int64_t{v}, {}}; }
  static Option text(const std::string& v) { return {v, {}}; }

  test::TempDir dir;
  std::unique_ptr<Disk> disk = make_real_disk();
};

TEST_F(Parts, ThreePartsHaveEverySampleOnceAndEachItsShareOfEveryClass) {
  const std::map<std::string, Option> keys{{"validation", number(0.1)}, {"test", number(0.2)}};
  const auto train = open("train", keys), validation = open("validation", keys), held = open("test", keys);
  EXPECT_EQ(validation->size(), 16u);  // of 161
  EXPECT_EQ(held->size(), 32u);
  std::set<int> all = rows(train);
  all.merge(rows(validation));
  all.merge(rows(held));
  EXPECT_EQ(train->size() + validation->size() + held->size(), 161u);
  EXPECT_EQ(all.size(), 161u);
  for (const auto& [part, share] : {std::pair(validation, 0.1), std::pair(held, 0.2)}) {
    auto count = classes(part);
    EXPECT_NEAR(count[0], 100 * share, 1);
    EXPECT_NEAR(count[1], 50 * share, 1);
    EXPECT_NEAR(count[2], 11 * share, 1);
  }
}

TEST_F(Parts, AreAFunctionOfTheSplitSeedAndInTheFingerprint) {
  const auto of = [&](int seed) {
    return open("validation", {{"validation", number(0.1)}, {"split_seed", whole(seed)}});
  };
  EXPECT_EQ(rows(of(0)), rows(of(0)));
  EXPECT_NE(rows(of(0)), rows(of(1)));
  std::set<std::string> prints;
  for (const double share : {0.0, 0.1, 0.2})
    prints.insert(open("train", {{"validation", number(share)}})->info().fingerprint);
  for (const int seed : {1, 2})
    prints.insert(open("train", {{"validation", number(0.1)}, {"split_seed", whole(seed)}})->info().fingerprint);
  for (const int fold : {1, 2})
    prints.insert(open("train", {{"folds", whole(5)}, {"fold", whole(fold)}})->info().fingerprint);
  EXPECT_EQ(prints.size(), 7u);
}

TEST_F(Parts, FoldsAreValidatedOnceEach) {
  std::set<int> all;
  std::size_t samples = 0;
  for (int fold = 1; fold <= 5; ++fold) {
    const std::map<std::string, Option> keys{{"folds", whole(5)}, {"fold", whole(fold)}, {"test", number(0.2)}};
    const auto validation = open("validation", keys), train = open("train", keys);
    EXPECT_NEAR(static_cast<double>(validation->size()), 129 / 5.0, 1);
    EXPECT_NEAR(classes(validation)[2], 9 / 5.0, 1);
    EXPECT_EQ(train->size() + validation->size(), 129u);
    EXPECT_EQ(rows(open("test", keys)), rows(open("test", {{"test", number(0.2)}}))) << "the test is not a fold's";
    all.merge(rows(validation));
    samples += validation->size();
  }
  EXPECT_EQ(samples, 129u);
  EXPECT_EQ(all.size(), 129u);
}

TEST_F(Parts, TooFewSamplesForAPartAreRefusedWithTheirNumber) {
  EXPECT_TRUE(test::says(test::complaint_of([&] { open("validation", {{"folds", whole(200)}}); }), "at most 161"));
  EXPECT_TRUE(test::says(test::complaint_of([&] {
                           open("test", {{"test", number(0.001)}});
                         }),
                         "test = 0.001 of 161 samples keeps none back"));
}

TEST_F(Parts, ByTimeTheLastSamplesAreTheTestAndThoseBeforeValidate) {
  const std::map<std::string, Option> keys{{"validation", number(0.1)}, {"test", number(0.2)}, {"split", text("time")}};
  EXPECT_EQ(*rows(open("train", keys)).rbegin(), 112);
  EXPECT_EQ(*rows(open("validation", keys)).begin(), 113);
  EXPECT_EQ(*rows(open("test", keys)).begin(), 129);
  EXPECT_EQ(open("test", keys)->size(), 32u);
}

TEST_F(Parts, AnotherFileHasTheClassesOfTheTrainingFile) {
  test::write_bytes(dir.path("more.csv"), "x,y\n1000,c\n1001,a\n");
  const std::map<std::string, Option> keys{{"validation", text(dir.path("more.csv"))}};
  const auto validation = open("validation", keys);
  EXPECT_EQ(rows(validation), (std::set{1000, 1001}));
  EXPECT_EQ(validation->label(0), 2);
  EXPECT_EQ(validation->info().classes, 3);
  EXPECT_EQ(open("train", keys)->size(), 161u);
}

TEST_F(Parts, OfWhatHoldoutLeaves) {
  const std::map<std::string, Option> keys{{"validation", number(0.1)}, {"holdout", number(0.2)}};
  const auto held = rows(open("test", keys));
  EXPECT_EQ(held, rows(open("test", {{"holdout", number(0.2)}})));
  std::set<int> all = rows(open("train", keys));
  EXPECT_EQ(all.size(), 161u - 32 - 16);
  all.merge(rows(open("validation", keys)));
  all.merge(std::set(held));
  EXPECT_EQ(all.size(), 161u);
}

TEST_F(Parts, TakeTheClassesIntoAccountOnlyWhereAsked) {
  const auto plain = open("validation", {{"validation", number(0.1)}, {"stratify", {false, {}}}});
  EXPECT_EQ(plain->size(), 16u);
  EXPECT_NE(rows(plain), rows(open("validation", {{"validation", number(0.1)}})));
}

TEST_F(Parts, EveryProblemAtOnce) {
  const std::string text = complaint_of([&] {
    open("train", {{"validation", number(0.6)},
                   {"test", number(0.5)},
                   {"holdout", number(0.1)},
                   {"folds", whole(3)},
                   {"fold", whole(4)},
                   {"split", Option{std::string("tine"), {}}}});
  });
  EXPECT_PRED2(says, text, "too few are left to train with");
  EXPECT_PRED2(says, text, "keep data.test");
  EXPECT_PRED2(says, text, "keep one of them");
  EXPECT_PRED2(says, text, "there are 3 folds");
  EXPECT_PRED2(says, text, "time");
}

TEST_F(Parts, ATextIsCutIntoStretches) {
  std::string long_text;
  for (int i = 0; i < 1000; ++i) long_text += static_cast<char>('a' + i / 100);  // aaa...bbb...
  test::write_bytes(dir.path("t.txt"), long_text);
  const auto first_and_last = [&](const std::string& split) {
    const auto d = open(split, {{"kind", text("text")},
                                {"path", text(dir.path("t.txt"))},
                                {"length", whole(10)},
                                {"validation", number(0.2)},
                                {"test", number(0.1)}});
    Sample s(d->fields());
    d->get(0, {}, s.ref());
    const int first = s.field<std::int32_t>(0)[0];
    d->get(d->size() - 1, {}, s.ref());
    return std::pair(first, s.field<std::int32_t>(0)[9]);
  };
  EXPECT_EQ(first_and_last("validation"), std::pair(7, 8));
  EXPECT_EQ(first_and_last("test"), std::pair(9, 9));
}

}  // namespace
}  // namespace echelon::data
