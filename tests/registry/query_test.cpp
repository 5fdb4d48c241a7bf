#include "registry/query.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "registry/registry.h"
#include "tests/support/says.h"
#include "tests/support/temp_dir.h"

namespace echelon {
namespace {

using test::complaint_of;
using test::says;

RunRecord record(const std::string& name, std::map<std::string, RunValue> values, std::vector<std::string> tags = {}) {
  RunRecord r{.name = name, .stamp = "s", .values = std::move(values), .labels = {}, .checkpoints = {}};
  r.labels.tags = std::move(tags);
  return r;
}

class Query : public ::testing::Test {
 protected:
  Query() : registry(dir.path()) {
    registry.put(record("a", {{"test_accuracy", 0.99}, {"optim.lr", 0.01}, {"seconds", 30.0}, {"model", "lenet5"}}));
    registry.put(record("b", {{"test_accuracy", 0.985}, {"optim.lr", 0.05}, {"seconds", 10.0}, {"model", "mlp"}},
                        {"paper", "old"}));
    registry.put(record("c", {{"test_accuracy", 0.97}, {"optim.lr", 0.01}, {"seconds", 5.0}, {"model", "mlp"}}));
    registry.put(record("d", {{"optim.lr", 0.5}, {"model", "GPT"}, {"train.shuffle", 1.0}}));
  }
  std::string found(const std::string& question) {
    std::string names;
    for (const RunRecord& r : registry.find(question)) names += r.name;
    return names;
  }
  test::TempDir dir;
  Registry registry;
};

TEST_F(Query, ComparesSettingsAndResultsAndOrders) {
  EXPECT_EQ(found("test_accuracy > 0.98 and optim.lr < 0.1 order by seconds"), "ba");
  EXPECT_EQ(found("test_accuracy > 0.98 and optim.lr < 0.1 order by seconds desc"), "ab");
  EXPECT_EQ(found("test_accuracy >= 0.985"), "ab");
  EXPECT_EQ(found("test_accuracy <= 0.985"), "bc");
  EXPECT_EQ(found("optim.lr = 0.01"), "ac");
  EXPECT_EQ(found("optim.lr != 0.01"), "bd");
  EXPECT_EQ(found(""), "abcd");
}

TEST_F(Query, OrBindsLessThanAndAndParenthesesDecide) {
  EXPECT_EQ(found("model = mlp and seconds < 7 or model = lenet5"), "ac");
  EXPECT_EQ(found("model = mlp and (seconds < 7 or model = lenet5)"), "c");
  EXPECT_EQ(found("not model = mlp"), "ad");
  EXPECT_EQ(found("not (model = mlp or model = lenet5)"), "d");
}

TEST_F(Query, TextsAreComparedWholeOrSearchedInAnyCase) {
  EXPECT_EQ(found("model = \"mlp\""), "bc");
  EXPECT_EQ(found("model = 'gpt'"), "");
  EXPECT_EQ(found("model ~ gpt"), "d");
  EXPECT_EQ(found("name ~ A"), "a");
}

TEST_F(Query, ARunHasSeveralTags) {
  EXPECT_EQ(found("tag = paper"), "b");
  EXPECT_EQ(found("tag = old and tag = paper"), "b");
  EXPECT_EQ(found("not tag = paper"), "acd");
  EXPECT_EQ(found("tag"), "b");
}

TEST_F(Query, ANameAloneIsTrueWhereItIsNeitherMissingNorZeroNorFalse) {
  RunRecord starred = record("e", {{"train.shuffle", 0.0}});
  starred.labels.star = true;
  registry.put(starred);
  EXPECT_EQ(found("star"), "e");
  EXPECT_EQ(found("not star"), "abcd");
  EXPECT_EQ(found("train.shuffle"), "d");
}

TEST_F(Query, WhatARunDoesNotHaveIsNeitherEqualNorUnequalAndComesLast) {
  EXPECT_EQ(found("test_accuracy != 0.97"), "ab");
  EXPECT_EQ(found("test_accuracy"), "abc");
  EXPECT_EQ(found("order by test_accuracy"), "cbad");
  EXPECT_EQ(found("order by test_accuracy desc"), "abcd");
  EXPECT_EQ(found("order by test_accuracy desc limit 2"), "ab");
  EXPECT_EQ(found("train.shuffle = true"), "d");
}

TEST_F(Query, ValuesAndNamesAreNeverSql) {
  EXPECT_EQ(found("model = \"x' OR 1=1 --\""), "");
  EXPECT_EQ(compile_query("model = \"x'; DROP TABLE runs\"").where.find("DROP"), std::string::npos);
  EXPECT_EQ(compile_query("drop.table > 1").where.find("drop"), std::string::npos);
  EXPECT_EQ(found(""), "abcd");
}

TEST_F(Query, MistakesAreExplainedWithTheirPlace) {
  EXPECT_TRUE(says(complaint_of([&] { registry.find("test_acuracy > 1"); }), "did you mean 'test_accuracy'?"));
  EXPECT_TRUE(says(complaint_of([&] { registry.find("test_accuracy > "); }), "followed by a number or a text"));
  EXPECT_TRUE(says(complaint_of([&] { registry.find("seconds < 3 seconds"); }), "expected 'and', 'or'"));
  EXPECT_TRUE(says(complaint_of([&] { registry.find("(seconds < 3"); }), "expected ')'"));
  EXPECT_TRUE(says(complaint_of([&] { registry.find("model = \"mlp"); }), "no end"));
  EXPECT_TRUE(says(complaint_of([&] { registry.find("seconds $ 3"); }), "character 9"));
  EXPECT_TRUE(says(complaint_of([&] { registry.find("order seconds"); }), "'by'"));
  EXPECT_TRUE(says(complaint_of([&] { registry.find("limit 0"); }), "whole number"));
  EXPECT_TRUE(says(complaint_of([&] { registry.find(std::string(5000, ' ')); }), "4096"));
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "(";
  EXPECT_TRUE(says(complaint_of([&] { registry.find(deep); }), "parentheses"));
  EXPECT_TRUE(says(complaint_of([&] { registry.find("seconds < 3 limit -1"); }), "'-1' (character 19)"));
  EXPECT_TRUE(says(complaint_of([&] { registry.find("seconds < )"); }), "')' (character 11)"));
}

TEST_F(Query, LongQuestionsAreAnswered) {
  std::string any = "tag", all = "model", nots;
  for (int i = 0; i < 500; ++i) any += " or tag", all += " and model";
  EXPECT_EQ(found(any), "b");
  EXPECT_EQ(found(all.substr(0, all.rfind(" and ", 4000))), "abcd");
  for (int i = 0; i < 1000; ++i) nots += "not ";
  EXPECT_EQ(found(nots + "tag"), "b");
  EXPECT_EQ(found("not " + nots + "tag"), "acd");
  std::string inside = "model";
  for (int i = 0; i < 10; ++i) inside = "not (tag or model and not model or " + inside + " and model)";
  EXPECT_EQ(found(inside), "acd");
}

}  // namespace
}  // namespace echelon
