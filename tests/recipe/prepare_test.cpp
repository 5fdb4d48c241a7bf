#include "recipe/prepare.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "recipe/toml.h"
#include "tests/support/source_path.h"

namespace echelon {
namespace {

class Prepare : public ::testing::Test {
 protected:
  PreparedRun prepare(const std::string& text) {
    Recipe recipe = read_recipe("r.toml", {parse_toml(text, "r.toml"), {}, {}}, problems_);
    return prepare_run(*disk_, std::move(recipe), problems_, {.root = "nowhere", .share = {source_path("share")}});
  }
  std::string problems() const { return problems_.text("r.toml"); }

  std::unique_ptr<Disk> disk_ = make_real_disk();
  Problems problems_;
};

std::string blobs(const std::string& train, const std::string& more = "", const std::string& data = "") {
  return "[model]\nname = 'mlp'\nhidden = [8]\n[data]\nkind = 'synthetic'\nsamples = 1000\nshape = [6]\nclasses = 3\n" +
         data + "\n[train]\n" + train + "\n" + more;
}

TEST_F(Prepare, BuildsDataModelAndSteps) {
  const PreparedRun s = prepare(blobs("epochs = 3\nbatch = 64"));
  ASSERT_TRUE(problems_.empty()) << problems();
  EXPECT_EQ(s.train->size(), 1000u);
  EXPECT_EQ(s.test->size(), 200u);
  EXPECT_EQ(s.model->inputs().classes, 3);
  EXPECT_EQ(s.model->inputs().input().type.shape, (Shape{6}));
  EXPECT_EQ(s.total_steps, 3 * 16);  // the last batch of an epoch is smaller
  EXPECT_EQ(s.steps_in({0.5, true}), 8);
  EXPECT_EQ(s.steps_in({7, false}), 7);
  EXPECT_EQ(s.steps_in({0, true}), 0);
  EXPECT_EQ(s.loader_options().shards, 2u);
}

TEST_F(Prepare, ALossThatDoesNotFitIsOneProblem) {
  for (const char* loss : {"name = 'huber'", "name = 'huber'\ndelta = 2", "name = 'quantile'\nquantiles = [0.1, 0.9]",
                           "name = 'binary'", "name = 'mae'"}) {
    problems_ = {};
    prepare(blobs("epochs = 1", std::string("[loss]\n") + loss));
    EXPECT_EQ(problems_.list().size(), 1u) << problems();
  }
}

TEST_F(Prepare, AFileOfAPartIsBlamedWhereItIsNamed) {
  prepare("[model]\nname = 'mlp'\n[data]\nkind = 'digits'\nlimit = 100\nvalidation = 'gone'\n[train]\nepochs = 1\n");
  ASSERT_EQ(problems_.list().size(), 1u) << problems();
  EXPECT_EQ(problems_.list()[0].place.line, 6) << problems();
}

TEST_F(Prepare, BatchNormOfFewSamplesIsPointedOut) {
  const auto said = [&](const std::string& model, const std::string& train) {
    const PreparedRun s =
        prepare("[model]\nname = 'mlp'\nhidden = [8]\n" + model +
                "\n[data]\nkind = 'synthetic'\nsamples = 100\nshape = [6]\nclasses = 3\n[train]\nepochs = 1\n" + train);
    return std::ranges::any_of(s.recipe.notes, [](const std::string& note) {
      return note.starts_with("batch norm sees the 8 samples of one shard");
    });
  };
  EXPECT_TRUE(said("batch_norm = true", "batch = 16\nshards = 2"));
  EXPECT_FALSE(said("batch_norm = true", "batch = 32\nshards = 2"));
  EXPECT_FALSE(said("", "batch = 16\nshards = 2"));
}

TEST_F(Prepare, TheLoaderIsToldWhatTheRecipeSays) {
  const PreparedRun s = prepare(blobs("epochs = 3\nbatch = 64\nseed = 7\nshards = 4\ndrop_partial = true"));
  ASSERT_TRUE(problems_.empty()) << problems();
  EXPECT_EQ(s.loader_options().seed, 7u);
  EXPECT_EQ(s.loader_options().shards, 4u);
  EXPECT_TRUE(s.loader_options().drop_partial);
  EXPECT_EQ(s.total_steps, 3 * 15);
}

TEST_F(Prepare, TrainingDataAreShuffledAndAllThere) {
  const PreparedRun s = prepare(blobs("epochs = 1\nbatch = 10"));
  ASSERT_TRUE(problems_.empty()) << problems();
  std::vector<bool> seen(1000, false);
  std::size_t in_place = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::uint64_t origin = s.train->origin(i, {.seed = 1, .epoch = 0});
    in_place += origin == i;
    seen[origin] = true;
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 1000);
  EXPECT_LT(in_place, 20u);
}

TEST_F(Prepare, ScheduleAndGrowthFollowTheEpochsOfTheData) {
  const PreparedRun s =
      prepare(blobs("epochs = 4\nbatch = 50",
                    "[optim]\nlr = 1.0\n[schedule]\nname = 'step'\nat_epochs = [3]\nwarmup_epochs = 0.5\n"
                    "[schedule.growth]\nfactor = 2\nevery_epochs = 1\nmax_batch = 200"));
  ASSERT_TRUE(problems_.empty()) << problems();
  // 20 steps, then 10, then 5 and 5.
  ASSERT_EQ(s.batches.size(), 3u);
  EXPECT_EQ(s.batches[2].step, 30u);
  EXPECT_EQ(s.batches[2].batch, 200u);
  EXPECT_EQ(s.total_steps, 40);
  const Schedule schedule = s.schedule();
  EXPECT_DOUBLE_EQ(schedule.lr(4), 0.5);
  EXPECT_DOUBLE_EQ(schedule.lr(34), 1);
  EXPECT_DOUBLE_EQ(schedule.lr(35), 0.1);
}

TEST_F(Prepare, TheDigitsOfTheRepositoryFitLeNet) {
  const PreparedRun s = prepare("[model]\nname = 'lenet5'\n[data]\nkind = 'digits'\n[train]\nsteps = 10");
  ASSERT_TRUE(problems_.empty()) << problems();
  EXPECT_EQ(s.total_steps, 10);
  EXPECT_EQ(s.model->inputs().classes, 10);
}

TEST_F(Prepare, AModelThatDoesNotFitTheDataIsAProblem) {
  prepare("[model]\nname = 'lenet5'\n[data]\nkind = 'synthetic'\nshape = [6]\n[train]\nsteps = 10");
  EXPECT_NE(problems().find("r.toml:2: "), std::string::npos) << problems();
}

TEST_F(Prepare, MissingDataAndBadModelSettingsAreReportedTogether) {
  prepare(
      "[model]\nname = 'mlp'\nhiden = [3]\n[data]\nkind = 'csv'\npath = '/nowhere/x.csv'\n[train]\nsteps = 10\nbatchs "
      "= 3");
  const std::string text = problems();
  for (const char* part : {"r.toml:3: unknown key model.hiden; did you mean 'hidden'?", "r.toml:6: data: ",
                           "/nowhere/x.csv", "r.toml:9: unknown key train.batchs; did you mean 'batch'?"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nis not in\n" << text;
}

TEST_F(Prepare, UnknownKeysOfTheDataAreProblems) {
  prepare(blobs("steps = 1", "", "sampels_test = 3"));
  EXPECT_NE(problems().find("did you mean 'samples_test'?"), std::string::npos) << problems();
}

TEST_F(Prepare, BatchAndTargetsMustFitTheData) {
  prepare(blobs("steps = 10\nbatch = 2000"));
  EXPECT_NE(problems().find("train.batch = 2000 is more than the 1000 samples"), std::string::npos) << problems();
  problems_ = {};
  prepare("[model]\nname = 'autoencoder'\n[data]\nkind = 'digits'\n[train]\nsteps = 10\ntarget_accuracy = 0.9");
  EXPECT_NE(problems().find("train.target_accuracy has no meaning"), std::string::npos) << problems();
}

TEST_F(Prepare, AStateThatIsCarriedNeedsSamplesThatContinueEachOther) {
  prepare("[model]\nname = 'char_lstm'\nhidden = 8\n[data]\nkind = 'synthetic'\nmake = 'tokens'\n[train]\nsteps = 10");
  EXPECT_NE(problems().find("carries its state from step to step"), std::string::npos) << problems();
}

TEST_F(Prepare, WithoutEvaluationNoTestDataAreNeeded) {
  const PreparedRun s = prepare(blobs("steps = 10\nevaluate = false"));
  EXPECT_TRUE(problems_.empty()) << problems();
  EXPECT_FALSE(s.test);
  prepare(blobs("steps = 10\nevaluate = false\npatience = 3"));
  EXPECT_NE(problems().find("train.patience needs evaluations"), std::string::npos) << problems();
}

// The recipes that come with Echelon: the data of most have to be fetched first, but nothing else may be wrong.
TEST_F(Prepare, EveryRecipeOfTheRepositoryIsSound) {
  std::filesystem::current_path(source_path(""));  // a recipe names systems that lie there
  int count = 0;
  for (const std::string folder : {"recipes/", "recipes/models/"})
    for (const std::string& name : disk_->list(source_path(folder))) {
      if (!name.ends_with(".toml")) continue;
      ++count;
      Problems problems;
      const PreparedRun s = prepare_run(*disk_, source_path(folder + name), {}, problems,
                                        {.root = "nowhere", .share = {source_path("share")}});
      // The digits and the clubs come with Echelon, some data are made, and a text has a path that every Debian has.
      const auto& data = s.recipe.data.items;
      const auto& kind = std::get<std::string>(data.at("kind").value);
      const bool is_here = kind == "digits" || kind == "clubs" || data.contains("make") || data.contains("path");
      EXPECT_EQ(is_here, s.model != nullptr) << problems.text(name);
      for (const auto& problem : problems.list())
        EXPECT_TRUE(!is_here && problem.text.starts_with("data: ")) << name << ": " << problem.text;
      EXPECT_FALSE(s.recipe.title.empty()) << name;
      EXPECT_TRUE(s.recipe.notes.empty() || s.recipe.notes.back().starts_with("train.shards")) << name;
    }
  EXPECT_GE(count, 18);
}

}  // namespace
}  // namespace echelon
