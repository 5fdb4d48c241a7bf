// A run stopped anywhere and resumed ends with the bits of one that was not: for every network and every update rule.

#include "run/training/training.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "parallel/planned/planned_engine.h"
#include "run/job.h"
#include "run/weights.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/says.h"
#include "tests/support/temp_dir.h"
#include "track/weights_hash.h"
#include "world/launch.h"
#include "world/wrappers/metered.h"

namespace echelon {
namespace {

const char* digits =
    "kind = \"synthetic\"\nmake = \"images\"\nshape = [1, 28, 28]\nsamples = 90\nsamples_test = 20\nclasses = 4\n";
const char* colour =
    "kind = \"synthetic\"\nmake = \"images\"\nshape = [3, 32, 32]\nsamples = 60\nsamples_test = 20\nclasses = 4\n";
const char* rows =
    "kind = \"synthetic\"\nmake = \"blobs\"\nshape = [5, 6]\nsamples = 90\nsamples_test = 20\nclasses = 4\n";
const char* tokens =
    "kind = \"synthetic\"\nmake = \"tokens\"\nshape = [9]\nsamples = 90\nsamples_test = 20\nclasses = 11\n";
const char* text = "kind = \"text\"\npath = \"text.txt\"\nlength = 6\nwindows = \"streams\"\nstreams = 20\n";

struct RecipeText {
  std::string model, data, optim = "name = \"momentum\"\nlr = 0.02\n", train = "", system = "";
  int epochs = 3;
};

class TestRun {
 public:
  TestRun(const test::TempDir& dir, const RecipeText& s, int cores)
      : alone_(cores), disk_(make_real_disk()), clock_(make_real_clock()) {
    const std::string path = dir.path("recipe.toml");
    write_file_atomically(*disk_, path,
                          fmt::format("[model]\n{}[data]\n{}[optim]\n{}[train]\nepochs = {}\nbatch = 20\nshards = 4\n"
                                      "eval_every_epochs = 1\n{}{}",
                                      s.model, s.data, s.optim, s.epochs, s.train, s.system));
    const Stream letters({.seed = 3});
    std::string written;
    for (std::uint64_t i = 0; i < 2500; ++i) written += static_cast<char>('a' + letters.below(9, i));
    write_file_atomically(*disk_, dir.path("text.txt"), written);
    Problems problems;
    prepared_ = prepare_run(*disk_, path, {}, problems);
    problems.throw_if_any(path);
    job_ = std::make_unique<TrainingJob>(make_job(prepared_));
  }
  std::unique_ptr<Training> training(Disk& disk, const std::string& checkpoints) {
    return std::make_unique<Training>(*job_, disk, *clock_, alone_.team, checkpoints, 2);
  }
  std::unique_ptr<Training> training(const std::string& checkpoints) { return training(*disk_, checkpoints); }
  std::int64_t steps() const { return job_->total_steps; }
  const TrainingJob& job() const { return *job_; }
  void measure(std::function<MetricValues(const EvaluatedModel&)> own) { job_->own_metrics = std::move(own); }

 private:
  LocalTeam alone_;
  std::unique_ptr<Disk> disk_;
  std::unique_ptr<Clock> clock_;
  PreparedRun prepared_;
  std::unique_ptr<TrainingJob> job_;
};

// Raises the flag after so many steps of this process.
class StopAfter : public RunListener {
 public:
  explicit StopAfter(std::int64_t step) : step_(step) {}
  void on_step(const StepEvent& e) override {
    if (e.step >= step_) stop = true;
  }
  Training::StopFlag stop{false};

 private:
  std::int64_t step_;
};

std::string uninterrupted(const RecipeText& s, int cores) {
  const test::TempDir dir;
  TestRun run(dir, s, cores);
  const Training::StopFlag never{false};
  return run.training(dir.path("c"))->run(never).weights_sha256;
}

std::string with_stops(const RecipeText& s, std::uint32_t seed) {
  const test::TempDir dir;
  TestRun run(dir, s, 2);
  const Stream random({.seed = seed});
  for (std::int64_t at = 0, n = 0;; ++n) {
    auto training = run.training(dir.path("c"));
    if (n > 0) {
      EXPECT_TRUE(training->resume());
    }
    EXPECT_EQ(training->next_step(), at);
    at = std::min(run.steps(), at + 1 + random.below(5, static_cast<std::uint64_t>(n)));
    StopAfter stop(at);
    training->add(stop);
    const RunSummary r = training->run(stop.stop);
    if (r.stopped_by != "signal") return r.weights_sha256;
  }
}

TEST(Training, StoppedAndResumedEndsWithTheSameBitsForEveryNetwork) {
  const RecipeText cases[] = {{"name = \"mlp\"\nhidden = [17, 9]\ndropout = 0.2\n", digits},
                              {"name = \"lenet5\"\n", digits},
                              {"name = \"resnet20\"\n", colour},
                              {"name = \"lstm\"\nhidden = 7\n", rows},
                              {"name = \"gru\"\nhidden = 7\n", rows},
                              {"name = \"gpt\"\nwidth = 16\nheads = 2\nlayers = 1\ndropout = 0.1\n", tokens},
                              {"name = \"char_lstm\"\nhidden = 7\nlayers = 2\n", text},
                              {"name = \"char_gru\"\nhidden = 7\n", text},
                              {"name = \"autoencoder\"\n", digits},
                              {"name = \"gan\"\n", digits}};
  std::uint32_t seed = 1;
  for (const RecipeText& s : cases) {
    SCOPED_TRACE(s.model);
    EXPECT_EQ(uninterrupted(s, 1), with_stops(s, seed++));
  }
}

TEST(Training, MetricsOfTheCallerAreReportedWithEachEvaluation) {
  const test::TempDir dir;
  TestRun run(dir, {.model = "name = \"mlp\"\nhidden = [9]\n", .data = digits, .epochs = 2}, 2);
  int asked = 0;
  run.measure([&](const EvaluatedModel& m) -> MetricValues {
    EXPECT_EQ(m.data, run.job().test);
    EXPECT_EQ(m.weights.size(), m.table.floats());
    return {{"times", ++asked}};
  });
  struct Listener : RunListener {
    void on_evaluation(const EvaluationEvent& e) override { seen.push_back(e.result.metrics.back()); }
    MetricValues seen;
  } listener;
  const auto training = run.training(dir.path("c"));
  training->add(listener);
  const Training::StopFlag never{false};
  const RunSummary summary = training->run(never);
  EXPECT_EQ(listener.seen, (MetricValues{{"times", 1}, {"times", 2}}));
  EXPECT_EQ(summary.test->metrics.back(), (std::pair<std::string, double>("times", 2)));
}

TEST(Training, StoppedAndResumedEndsWithTheSameBitsForEveryUpdateRule) {
  std::uint32_t seed = 100;
  for (const std::string& rule : rule_names()) {
    SCOPED_TRACE(rule);
    const RecipeText s{"name = \"mlp\"\nhidden = [9]\n", digits, fmt::format("name = \"{}\"\n", rule)};
    EXPECT_EQ(uninterrupted(s, 1), with_stops(s, seed++));
  }
}

// The rate drops at evaluations, and the average moves at every step: both are in the checkpoint.
TEST(Training, APlateauAndAnAverageAreResumedExactly) {
  const RecipeText s{"name = \"mlp\"\nhidden = [9]\n",
                     digits,
                     "name = \"adam\"\nlr = 0.1\nema = 0.9\n",
                     "",
                     "[schedule]\nname = \"plateau\"\npatience = 0\ndrop = 0.5\n",
                     8};
  auto average = [&](const std::string& checkpoints) {
    const auto disk = make_real_disk();
    CheckpointSearch search = latest_valid(*disk, checkpoints);
    EXPECT_TRUE(search.found.has_value());
    const Tensor t = search.found->state.read("ema");
    const auto bytes = t.bytes();
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  const test::TempDir one, other;
  TestRun whole(one, s, 1);
  const Training::StopFlag never{false};
  struct Rates : RunListener {
    std::vector<double> all;
    void on_step(const StepEvent& e) override { all.push_back(e.lr); }
  } rates;
  auto training = whole.training(one.path("c"));
  training->add(rates);
  const RunSummary wanted = training->run(never);
  EXPECT_LT(rates.all.back(), rates.all.front()) << "no evaluation was worse than one before";
  std::string hash;
  TestRun parts(other, s, 2);
  for (std::int64_t at = 3, n = 0; hash.empty(); at += 7, ++n) {
    auto part = parts.training(other.path("c"));
    if (n > 0) {
      EXPECT_TRUE(part->resume());
    }
    StopAfter stop(at);
    part->add(stop);
    const RunSummary r = part->run(stop.stop);
    if (r.stopped_by != "signal") hash = r.weights_sha256;
  }
  EXPECT_EQ(hash, wanted.weights_sha256);
  EXPECT_EQ(average(other.path("c")), average(one.path("c")));
}

TEST(Training, ARunThatHasEndedGoesOnToALaterEndWithTheBitsOfALongerOne) {
  RecipeText s{"name = \"mlp\"\nhidden = [9]\n", digits};
  const std::string wanted = uninterrupted(s, 1);
  const test::TempDir dir;
  const Training::StopFlag never{false};
  s.epochs = 2;
  TestRun shorter(dir, s, 1);
  EXPECT_EQ(shorter.training(dir.path("c"))->run(never).stopped_by, "end");
  s.epochs = 3;
  TestRun longer(dir, s, 1);
  auto training = longer.training(dir.path("c"));
  EXPECT_TRUE(training->resume());
  const RunSummary r = training->run(never);
  EXPECT_EQ(r.steps, longer.steps());
  EXPECT_EQ(r.stopped_by, "end");
  EXPECT_EQ(r.weights_sha256, wanted);
}

TEST(Training, ACrashGoesOnFromTheLastCheckpointWithTheSameBits) {
  const RecipeText s{"name = \"mlp\"\nhidden = [9]\ndropout = 0.3\n", digits, "name = \"adam\"\nlr = 0.01\n",
                     "checkpoint_every_steps = 2\n"};
  const std::string clean = uninterrupted(s, 1);
  for (std::int64_t crash = 1; crash < 15; crash += 3) {
    const test::TempDir dir;
    TestRun run(dir, s, 2);
    struct Crash : RunListener {
      std::int64_t at;
      explicit Crash(std::int64_t step) : at(step) {}
      void on_step(const StepEvent& e) override {
        if (e.step == at) throw std::runtime_error("the power failed");
      }
    } crashes(crash);
    {
      auto training = run.training(dir.path("c"));
      training->add(crashes);
      const Training::StopFlag never{false};
      EXPECT_THROW(training->run(never), std::runtime_error);
    }
    auto again = run.training(dir.path("c"));
    again->resume();
    EXPECT_LE(again->next_step(), crash);
    const Training::StopFlag never{false};
    EXPECT_EQ(again->run(never).weights_sha256, clean) << "crash at step " << crash;
  }
}

TEST(Training, ResumingWithAnotherModelDataOrRecipeIsRefused) {
  const test::TempDir dir;
  const RecipeText s{"name = \"mlp\"\nhidden = [9]\n", digits};
  {
    TestRun run(dir, s, 1);
    StopAfter stop(4);
    auto training = run.training(dir.path("c"));
    training->add(stop);
    training->run(stop.stop);
  }
  RecipeText model = s, data = s, recipe = s;
  model.model = "name = \"mlp\"\nhidden = [11]\n";
  data.data = std::string(digits) + "seed = 9\n";
  recipe.optim = "name = \"momentum\"\nlr = 0.5\n";
  const std::pair<RecipeText, const char*> cases[] = {
      {model, "model:"}, {data, "data:"}, {recipe, "settings of the recipe:"}};
  for (const auto& [other, expected] : cases) {
    TestRun run(dir, other, 1);
    auto training = run.training(dir.path("c"));
    try {
      training->resume();
      FAIL() << "accepted " << expected;
    } catch (const BadInput& e) {
      EXPECT_NE(std::string(e.what()).find(expected), std::string::npos) << e.what();
    }
  }
}

TEST(Training, AFullDiskIsReportedAndTrainingGoesOn) {
  const test::TempDir dir;
  const RecipeText s{"name = \"mlp\"\nhidden = [9]\n", digits, "name = \"sgd\"\n", "checkpoint_every_steps = 3\n"};
  TestRun run(dir, s, 1);
  struct Notes : RunListener {
    int saved = 0, refused = 0;
    std::vector<std::string> notes;
    void on_save(const SaveResult& r) override { saved += r.saved, refused += !r.saved && !r.skipped; }
    void on_note(const std::string& n) override { notes.push_back(n); }
  } listener;
  const auto real = make_real_disk();
  test::FaultyDisk disk(*real);
  disk.fail_at(6, test::Fault::full);  // somewhere in the first save
  auto training = run.training(disk, dir.path("c"));
  training->add(listener);
  const Training::StopFlag never{false};
  const RunSummary r = training->run(never);
  EXPECT_EQ(r.stopped_by, "end");
  EXPECT_EQ(r.not_saved, "");  // the last one was
  EXPECT_EQ(listener.refused, 1);
  EXPECT_GT(listener.saved, 0);
  ASSERT_FALSE(listener.notes.empty());
  EXPECT_NE(listener.notes[0].find("No space left"), std::string::npos) << listener.notes[0];
  EXPECT_TRUE(latest_valid(*real, dir.path("c")).found.has_value());
}

TEST(Training, SaysThatTheLastCheckpointIsMissing) {
  const test::TempDir dir;
  const RecipeText s{"name = \"mlp\"\nhidden = [9]\n", digits, "name = \"sgd\"\n", "checkpoint_every_epochs = 0\n"};
  TestRun run(dir, s, 1);
  const auto real = make_real_disk();
  test::FaultyDisk disk(*real);
  disk.fail_at(6, test::Fault::full);  // in the only save, which is the last
  const Training::StopFlag never{false};
  const RunSummary r = run.training(disk, dir.path("c"))->run(never);
  EXPECT_NE(r.not_saved.find("No space left"), std::string::npos) << r.not_saved;
}

// Every worker of a composed system has a state of its own.
TEST(Training, AComposedRunIsResumedWithAsManyWorkersOnly) {
  const test::TempDir dir;
  TestRun run(dir,
              {"name = \"mlp\"\nhidden = [9]\n", digits, "name = \"sgd\"\n", "",
               "[rule]\nname = \"grad_push\"\n[exchange]\nname = \"server\"\n[sync]\nname = \"async\"\n"},
              1);
  const auto train = [&](int workers, bool resumes) {
    run_in_threads(workers, {}, [&](World& world) {
      const auto meter = make_metered(world);
      Cores cores(1);
      Team team(*meter, cores, true);
      const auto disk = make_real_disk();
      Training training(run.job(), *disk, world.clock(), team, dir.path("c"), 2);
      if (resumes) training.resume();
      const Training::StopFlag never{false};
      training.run(never);
    });
  };
  train(3, false);
  const std::string text = test::complaint_of([&] { train(2, true); });
  EXPECT_TRUE(
      test::says(text, "workers, each of which goes on from a state of its own: the checkpoint has 3, this run 2"));
  EXPECT_NO_THROW(train(3, true));
}

// One rank's memory goes wrong after some steps: the majority names it, and nothing is saved that the ranks disagree
// on.
TEST(Training, WeightsThatRanksDisagreeOnAreNotSavedAndTheRankIsNamed) {
  for (const int culprit : {0, 2}) {
    const test::TempDir dir;
    TestRun run(
        dir, {"name = \"mlp\"\nhidden = [9]\n", digits, "name = \"sgd\"\n", "checkpoint_every_steps = 3\nkeep = 99\n"},
        1);
    struct Flip : RunListener {
      Training* training = nullptr;
      void on_step(const StepEvent& e) override {
        if (training && e.step == 5) training->engine().model()[0] += 1;
      }
    };
    const auto train = [&] {
      run_in_threads(3, {}, [&](World& world) {
        Cores cores(1);
        Team team(world, cores, true);  // each rank has weights of its own
        const auto disk = make_real_disk();
        Training training(run.job(), *disk, world.clock(), team, dir.path("c"), 99);
        Flip flip;
        if (world.rank() == culprit) flip.training = &training;
        training.add(flip);
        const Training::StopFlag never{false};
        training.run(never);
      });
    };
    std::string text;
    try {
      train();
    } catch (const RankFailed& e) {
      text = e.what();
    }
    EXPECT_TRUE(
        test::says(text, fmt::format("rank {} holds other weights than the 2 other ranks after step 5", culprit)));
    const auto saved = list_checkpoints(*make_real_disk(), dir.path("c"));
    ASSERT_EQ(saved.size(), 1u);
    EXPECT_EQ(saved[0].step, 3);
  }
}

// A replica of a stage of a split model, whether the others have a copy of the whole model or not.
TEST(Training, ReplicasOfAStageThatDisagreeAreNotSavedAndTheRankIsNamed) {
  for (const char* evaluate : {"all", "first"}) {
    const test::TempDir dir;
    TestRun run(
        dir, {"name = \"mlp\"\nhidden = [9]\n", digits, "name = \"sgd\"\n", "checkpoint_every_steps = 3\nkeep = 99\n"},
        1);
    TrainingJob job = run.job();
    job.plan = {.data = 3, .pipeline = 2, .evaluate = evaluate};
    struct Flip : RunListener {
      PlannedEngine* engine = nullptr;
      void on_step(const StepEvent& e) override {
        if (engine && e.step == 5) engine->only_stage().parameters()[0] += 1;
      }
    };
    std::string text;
    try {
      run_in_threads(6, {}, [&](World& world) {
        Cores cores(1);
        Team team(world, cores, true);
        const auto disk = make_real_disk();
        Training training(job, *disk, world.clock(), team, dir.path("c"), 99);
        Flip flip;
        if (world.rank() == 3) flip.engine = dynamic_cast<PlannedEngine*>(&training.engine());
        training.add(flip);
        const Training::StopFlag never{false};
        training.run(never);
      });
    } catch (const RankFailed& e) {
      text = e.what();
    }
    EXPECT_TRUE(test::says(text, "rank 3 holds other weights than the 2 other ranks of stage 1 after step"));
    const auto saved = list_checkpoints(*make_real_disk(), dir.path("c"));
    ASSERT_EQ(saved.size(), 1u) << evaluate;
    EXPECT_EQ(saved[0].step, 3);
  }
}

TEST(Training, RefusesWhenEveryCheckpointIsDamagedUnlessToldToRestart) {
  const test::TempDir dir;
  TestRun run(dir, {"name = \"mlp\"\nhidden = [9]\n", digits, "name = \"sgd\"\n", ""}, 1);
  const Training::StopFlag never{false};
  run.training(dir.path("c"))->run(never);
  const auto disk = make_real_disk();
  for (const auto& entry : list_checkpoints(*disk, dir.path("c")))
    disk->append_to(entry.path + "/model.safetensors")->append(std::as_bytes(std::span("x", 1)));
  EXPECT_THROW(run.training(dir.path("c"))->resume(), AllCheckpointsDamaged);
  EXPECT_FALSE(run.training(dir.path("c"))->resume(Training::AllDamaged::restart));
}

TEST(Training, StopsAtATargetAndAfterPatience) {
  const RecipeText target{"name = \"mlp\"\nhidden = [32]\n", digits, "name = \"adam\"\nlr = 0.01\n",
                          "target_accuracy = 0.3\n"};
  const RecipeText patience{"name = \"mlp\"\nhidden = [9]\n", digits, "name = \"sgd\"\nlr = 1e-9\n", "patience = 1\n"};
  for (const auto& [setup, expected] : {std::pair(target, "target"), std::pair(patience, "patience")}) {
    const test::TempDir dir;
    TestRun run(dir, setup, 1);
    const Training::StopFlag never{false};
    const RunSummary r = run.training(dir.path("c"))->run(never);
    EXPECT_EQ(r.stopped_by, expected);
    // Resumed when it had ended, it does nothing more.
    auto again = run.training(dir.path("c"));
    EXPECT_TRUE(again->resume());
    const RunSummary second = again->run(never);
    EXPECT_EQ(second.steps, r.steps);
    EXPECT_EQ(second.weights_sha256, r.weights_sha256);
    EXPECT_EQ(second.stopped_by, expected);
  }
}

}  // namespace
}  // namespace echelon
