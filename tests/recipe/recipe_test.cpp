#include "recipe/recipe.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "recipe/toml.h"

namespace echelon {
namespace {

Recipe read(std::string_view text, Problems& problems) {
  return read_recipe("r.toml", {parse_toml(text, "r.toml"), {}, {}}, problems);
}

std::string recipe_problems(std::string_view text) {
  Problems problems;
  read(text, problems);
  return problems.text("r.toml");
}

constexpr const char* good_recipe = R"(
title = "digits"
[model]
name = "lenet5"
[data]
path = "digits"
[optim]
name = "momentum"
weight_decay = 5e-4
[schedule]
name = "cosine"
warmup_epochs = 1
[train]
epochs = 5
batch = 96
target_accuracy = 0.99
patience = 3
eval_every_steps = 100
)";

TEST(Recipe, ReadsItsTables) {
  Problems problems;
  const Recipe r = read(good_recipe, problems);
  EXPECT_TRUE(problems.empty()) << problems.text("");
  EXPECT_EQ(r.title, "digits");
  EXPECT_EQ(r.model_name, "lenet5");
  EXPECT_EQ(r.lr, 0.1);  // usual for the rule
  EXPECT_EQ(make_optim(r).rule->slots(), std::vector<std::string>{"momentum"});
  EXPECT_EQ(r.schedule.name, "cosine");
  EXPECT_EQ(r.train.epochs, 5);
  EXPECT_EQ(r.train.steps, 0);
  EXPECT_EQ(r.train.shards, 2);
  EXPECT_TRUE(r.train.shards_derived);
  EXPECT_EQ(r.train.target_accuracy, 0.99);
  EXPECT_FALSE(r.train.target_loss);
  EXPECT_EQ(r.train.eval_every.amount, 100);
  EXPECT_FALSE(r.train.eval_every.epochs);
}

TEST(Recipe, TheResolvedOneNamesWhatWasDerivedAndIsTheSameRun) {
  Problems problems;
  const Recipe r = read(good_recipe, problems);
  const std::string text = resolved_toml(r);
  EXPECT_NE(text.find("\nshards = 2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nlr = 0.1\n"), std::string::npos) << text;
  const Recipe again = read(text, problems);
  EXPECT_TRUE(problems.empty()) << problems.text("");
  EXPECT_EQ(again.train.shards, 2);
  EXPECT_FALSE(again.train.shards_derived);
  EXPECT_EQ(again.train.target_accuracy, r.train.target_accuracy);
  EXPECT_FALSE(std::get<Option::Table>(r.tree.items.at("train").value)->items.contains("shards"));  // left alone
}

TEST(Recipe, AccumulatingIsALargerBatchInMoreShards) {
  const std::string text = "[model]\nname = 'lenet5'\n[data]\npath = 'd'\n[train]\nepochs = 1\nbatch = 32\n";
  Problems problems;
  const Recipe r = read(text + "accumulate = 3\n", problems), plain = read(text, problems);
  EXPECT_TRUE(problems.empty()) << problems.text("");
  EXPECT_EQ(r.train.batch, 96);
  EXPECT_EQ(r.train.shards, 3 * plain.train.shards);
  const Recipe again = read(resolved_toml(r), problems);  // not once more
  EXPECT_EQ(again.train.batch, 96);
  EXPECT_EQ(again.train.shards, r.train.shards);
  EXPECT_NE(r.notes.back().find("3 batches of 32"), std::string::npos);
  EXPECT_NE(recipe_problems(text + "accumulate = 65000\nshards = 32\n").find("train.accumulate = 65000"),
            std::string::npos);
}

TEST(Recipe, PlateauNeedsEvaluations) {
  const std::string text =
      "[model]\nname = 'lenet5'\n[data]\npath = 'd'\n[schedule]\nname = 'plateau'\npatience = 2\n"
      "[train]\nepochs = 1\n";
  Problems problems;
  const Recipe r = read(text, problems);
  EXPECT_TRUE(problems.empty()) << problems.text("");
  ASSERT_TRUE(r.schedule.plateau.has_value());
  EXPECT_EQ(r.schedule.plateau->patience, 2);
  EXPECT_NE(recipe_problems(text + "eval_every_epochs = 0\n").find("looks at evaluations"), std::string::npos);
}

TEST(Recipe, EveryProblemIsReportedAtOnce) {
  const std::string text = recipe_problems(R"(
[modle]
name = "lenet5"
[data]
[optim]
name = "adma"
lr = "fast"
[schedule]
name = "step"
[train]
epochs = 3
steps = 7
batch = 100
shards = 8
patience = 2
eval_every_epochs = 0
seeds = 1
target_accuracy = 99
)");
  for (const char* part :
       {"r.toml: model is missing", "r.toml:2: unknown key modle; did you mean 'model'?",
        "r.toml:6: optim.name must be one of sgd,", "did you mean 'adam'", "r.toml:7: optim.lr must be a number",
        "r.toml:8: schedule.every_epochs is missing", "r.toml:12: train.steps and train.epochs are both given",
        "r.toml:13: train.batch = 100 cannot be divided by train.shards = 8; use shards = 5, or batch = 104",
        "r.toml:15: train.patience counts evaluations", "r.toml:17: unknown key train.seeds; did you mean 'seed'?",
        "r.toml:18: train.target_accuracy must be a number from 0 to 1, is 99"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nis not in\n" << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 9) << text;
}

TEST(Recipe, AnEmptyOneSaysWhatIsNeeded) {
  const std::string text = recipe_problems("");
  for (const char* part : {"model is missing", "data is missing", "train.epochs is missing"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Recipe, TablesOfTheWrongTypeAreProblemsToo) {
  const std::string text = recipe_problems("model = 3\ndata = []\noptim = 'x'\nschedule = 1\ntrain = true");
  EXPECT_NE(text.find("model must be a table: write [model] above its keys, is 3"), std::string::npos) << text;
}

TEST(Recipe, ShardsAreDerivedFromTheBatchAlone) {
  // The largest power of two up to 8 that divides the batch and leaves at least 32 in each, or two.
  for (std::int64_t batch = 1; batch <= 1000; ++batch) {
    const std::int64_t shards = derived_shards(batch);
    EXPECT_EQ(batch % shards, 0);
    EXPECT_TRUE(shards <= 2 || batch / shards >= 32) << batch;
    EXPECT_TRUE(shards == 8 || batch % (2 * shards) != 0 || batch / (2 * shards) < 32) << batch;
  }
  EXPECT_EQ(derived_shards(64), 2);
  EXPECT_EQ(derived_shards(128), 4);
  EXPECT_EQ(derived_shards(1024), 8);
  EXPECT_EQ(derived_shards(12), 2);
  EXPECT_EQ(derived_shards(7), 1);
}

TEST(Recipe, DescribesTheBatch) {
  EXPECT_EQ(describe_batch(64, 8, 2), "batch 64 = 8 shards of 8 samples; 2 cores run 4 each, one after the other");
  EXPECT_EQ(describe_batch(64, 8, 8), "batch 64 = 8 shards of 8 samples");
  EXPECT_EQ(describe_batch(64, 8, 3),
            "batch 64 = 8 shards of 8 samples; 3 cores run up to 3 each, one after the other");
  EXPECT_EQ(describe_batch(64, 8, 1), "batch 64 = 8 shards of 8 samples; one core runs them one after the other");
  EXPECT_EQ(describe_batch(1, 1, 1), "batch 1 = 1 shard of 1 sample");
  EXPECT_EQ(describe_batch(12, 1, 2),
            "batch 12 = 1 shard of 12 samples; only 1 of 2 cores have work: raise train.shards to use more");
}

}  // namespace
}  // namespace echelon
