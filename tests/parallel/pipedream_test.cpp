// PipeDream's schedule: which weights a step's gradient is of, and that a run is a function of recipe and plan.

#include <gtest/gtest.h>

#include <cstring>

#include "nn/initialise.h"
#include "parallel/engine.h"
#include "parallel/planned/pipedream_engine.h"
#include "tests/parallel/small_networks.h"
#include "tests/support/temp_dir.h"
#include "tests/world/all_worlds.h"

namespace echelon {
namespace {

using namespace test;

constexpr double pipedream_lr = 0.1;

struct PipeDreamJob {
  Case network;
  int shards = 1, steps = 9, pause = 0;  // a pause: the pipeline is drained there, and everything goes through rank 0
  std::uint64_t batch = 12;
};

Case three_layers() {
  return {"mlp",
          table({{"hidden", integers({24, 24})}}),
          {.kind = data::SyntheticOptions::Kind::blobs, .samples = 120, .shape = {24}, .classes = 5}};
}
Case untied_gpt() {
  return {"gpt",
          table({{"width", integer(16)}, {"heads", integer(2)}, {"layers", integer(2)}, {"dropout", number(0.1)}}),
          {.kind = data::SyntheticOptions::Kind::tokens, .samples = 120, .shape = {9}, .classes = 11}};
}

// The weights of the whole model after the steps, then the losses.
std::vector<float> run_pipedream(World& world, const PipeDreamJob& j, const PlanSpec& plan) {
  const auto data = data::make_synthetic("train", j.network.data);
  const auto model = models::make_model(j.network.name, inputs_of(*data), j.network.options);
  Cores cores(1);
  Team team(world, cores, true);
  const auto engine = make_engine({.model = model.get(),
                                   .make_optim = [] { return optim("sgd"); },
                                   .fields = data->fields(),
                                   .shards = j.shards,
                                   .seed = 3,
                                   .plan = &plan},
                                  j.batch, nullptr, team);
  data::LoaderOptions options{.seed = 3, .batches = {{0, j.batch}}, .prefetch = 0};
  engine->adapt(options);
  data::Loader loader(data, options);
  std::vector<float> losses;
  const auto run = [&](std::int64_t from, std::int64_t to) {
    const Reached reached = engine->run({.from = from,
                                         .to = to,
                                         .loader = &loader,
                                         .lr = [](std::int64_t) { return pipedream_lr; },
                                         .epoch = [](std::int64_t) { return 0.0; },
                                         .asks_to_stop = [] { return false; },
                                         .on_progress =
                                             [&](const StepProgress& p) {
                                               EXPECT_EQ(p.step, static_cast<std::int64_t>(losses.size()) + 1);
                                               losses.push_back(static_cast<float>(p.result.loss));
                                             }});
    EXPECT_EQ(reached.step, to);
    engine->read_model();
  };
  if (j.pause > 0) {
    run(0, j.pause);
    engine->gather();
    if (world.rank() == 0) engine->state();
    engine->end_gather();
    engine->scatter();
  }
  run(j.pause, j.steps);
  std::vector<float> left(engine->model().begin(), engine->model().end());
  left.insert(left.end(), losses.begin(), losses.end());
  engine->close();
  return left;
}

std::vector<float> run_pipedream_on(const WorldUnderTest& world, const PipeDreamJob& j, const PlanSpec& plan) {
  const TempDir dir;
  world.run(plan.data * plan.pipeline * plan.tensor, [&](World& w) {
    const auto left = run_pipedream(w, j, plan);
    if (w.rank() == 0) write_file_atomically(*make_real_disk(), dir.path() + "/left", std::as_bytes(std::span(left)));
  });
  const auto bytes = read_file(*make_real_disk(), dir.path() + "/left", 1 << 30);
  std::vector<float> left(bytes.size() / sizeof(float));
  std::memcpy(left.data(), bytes.data(), bytes.size());
  return left;
}

const WorldUnderTest& threads_world() {
  return *std::ranges::find(all_worlds(), std::string("threads"), &WorldUnderTest::name);
}

// The definition, on one rank and without any pipeline: step t's gradient is of weights of which each parameter has
// the version after its stage's first t - staleness updates.
std::vector<float> by_definition(const PipeDreamJob& j, const PlanSpec& plan) {
  const auto data = data::make_synthetic("train", j.network.data);
  const auto model = models::make_model(j.network.name, inputs_of(*data), j.network.options);
  const auto slice = static_cast<std::int64_t>(j.batch);
  const PlanLayout layout(plan, 1);
  StagePlans plans(*model, layout, slice);
  std::vector<HostedStage> all;
  for (int stage = 0; stage < layout.stages(); ++stage) all.push_back({stage, 0, 0, {}});
  std::map<std::string, int> staleness;
  for (const HostedStage& h : all) {
    const Graph& graph = plans.prepare(slice, all).of(h.stage, 0).plan.graph;
    for (std::size_t p = 0; p < graph.parameters().size(); ++p)
      if (graph.contributions()[p])
        staleness[graph.parameters()[p].name] =
            plan.sync == "vertical" ? layout.stages() - 1 : layout.stages() - h.stage - 1;
  }

  const auto phase = std::move(model->training(slice).front());
  const Plan whole = compile(phase.graph);
  ParameterTable table;
  table.include(model->training(1).front().graph);
  table.include(model->evaluation(1));
  std::vector<std::vector<float>> versions(1, std::vector<float>(table.floats()));
  nn::initialise(table, 3, versions.front());
  Buffer weights(table.floats() * sizeof(float)), gradient(table.floats() * sizeof(float));
  Buffer arena(whole.memory.arena_bytes), kept(whole.memory.kept_bytes);
  Executor executor(whole, table, weights.as<float>(), gradient.as<float>(), arena.as<std::byte>(),
                    kept.as<std::byte>());
  data::Loader loader(data, {.seed = 3, .batches = {{0, j.batch}}, .prefetch = 0});
  std::vector<float> losses;
  for (int t = 0; t < j.steps; ++t) {
    const data::Batch& batch = loader.at(static_cast<std::uint64_t>(t));
    for (const ParameterTable::Entry& e : table.entries()) {
      const int version = std::max(0, t - staleness[e.parameter.name]);
      std::copy_n(versions[static_cast<std::size_t>(version)].begin() + static_cast<std::ptrdiff_t>(e.offset), e.size,
                  weights.as<float>().begin() + static_cast<std::ptrdiff_t>(e.offset));
    }
    for (std::size_t f = 0; f < data->fields().size(); ++f)
      if (const auto it = executor.inputs().find(data->fields()[f].name); it != executor.inputs().end())
        std::memcpy(it->second.data(), batch.field(0, f).data(), it->second.size());
    const double terms = static_cast<double>(j.batch) * static_cast<double>(phase.loss_terms);
    executor.run(
        {.seed = 3, .step = static_cast<std::uint32_t>(t), .share = 1, .loss_scale = static_cast<float>(1 / terms)});
    losses.push_back(static_cast<float>(*reinterpret_cast<const float*>(executor.output("loss").data()) / terms));
    std::vector<float> next = versions.back();
    for (std::size_t i = 0; i < next.size(); ++i) next[i] -= static_cast<float>(pipedream_lr) * gradient.as<float>()[i];
    versions.push_back(std::move(next));
  }
  std::vector<float> left = versions.back();
  left.insert(left.end(), losses.begin(), losses.end());
  return left;
}

double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double most = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) most = std::max<double>(most, std::abs(a[i] - b[i]));
  return most;
}

PlanSpec pipedream(int data, int pipeline, const char* sync = "stash") {
  return {.data = data, .pipeline = pipeline, .schedule = "pipedream", .sync = sync};
}

TEST(PipeDream, AStepsGradientIsOfTheWeightsThatItsForwardPassRead) {
  for (const Case& network : {three_layers(), untied_gpt()})
    for (const int p : {2, 3, 4}) {
      const PipeDreamJob job{.network = network};
      std::vector<float> exact = run_pipedream_on(threads_world(), job, {.data = 1, .pipeline = p});
      for (const char* sync : {"stash", "vertical"}) {
        const std::vector<float> got = run_pipedream_on(threads_world(), job, pipedream(1, p, sync));
        EXPECT_LT(difference(got, by_definition(job, pipedream(1, p, sync))), 1e-5) << network.name << ", p " << p;
        EXPECT_GT(difference(got, exact), 1e-4) << "a result of its own";
      }
    }
}

TEST(PipeDream, StalenessIsThatOfTheStage) {
  for (int stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(pipedream(1, 4).staleness(stage), 4 - stage - 1);
    EXPECT_EQ(pipedream(1, 4, "vertical").staleness(stage), 3);
    EXPECT_EQ((PlanSpec{.pipeline = 4}.staleness(stage)), 0);
  }
}

TEST(PipeDream, MicroBatchesAndReplicasOfAStepAreOneUpdate) {
  PipeDreamJob job{.network = three_layers()};
  const std::vector<float> one = run_pipedream_on(threads_world(), job, pipedream(1, 3));
  job.shards = 4;
  const std::vector<float> four = run_pipedream_on(threads_world(), job, pipedream(1, 3));
  EXPECT_LT(difference(four, one), 1e-5);
  EXPECT_TRUE(same_bits(run_pipedream_on(threads_world(), job, pipedream(2, 3)), four));
  EXPECT_TRUE(same_bits(run_pipedream_on(threads_world(), job, pipedream(4, 3)), four));
}

TEST(PipeDream, IsAFunctionOfRecipeAndPlanInEveryWorld) {
  const PipeDreamJob job{.network = untied_gpt(), .shards = 2, .steps = 6};
  const std::vector<float> first = run_pipedream_on(threads_world(), job, pipedream(1, 3));
  for (const WorldUnderTest& world : all_worlds())
    EXPECT_TRUE(same_bits(run_pipedream_on(world, job, pipedream(1, 3)), first)) << world.name;
}

TEST(PipeDream, DrainsForACheckpointAndGoesOnFromIt) {
  PipeDreamJob job{.network = untied_gpt(), .pause = 4};
  const std::vector<float> paused = run_pipedream_on(threads_world(), job, pipedream(1, 3));
  EXPECT_TRUE(same_bits(run_pipedream_on(threads_world(), job, pipedream(1, 3)), paused));
  job.pause = 0;  // the pipeline was not drained: the steps after it had older weights
  EXPECT_GT(difference(run_pipedream_on(threads_world(), job, pipedream(1, 3)), paused), 1e-6);
}

TEST(PipeDream, AllocatesTheVersionsThatThePlanPredicts) {
  const auto data = data::make_synthetic("train", three_layers().data);
  const auto model = models::make_model("mlp", inputs_of(*data), three_layers().options);
  for (const char* sync : {"stash", "vertical"}) {
    const PlanSpec plan = pipedream(1, 3, sync), flush{.data = 1, .pipeline = 3};
    const PlanView view = view_plan(*model, PlanLayout(plan, 2), 6, 0),
                   exact = view_plan(*model, PlanLayout(flush, 2), 6, 0);
    for (std::size_t rank = 0; rank < 3; ++rank) {
      const std::size_t versions = std::string(sync) == "vertical" ? 3 : 3 - rank;
      EXPECT_EQ(view.ranks[rank].parameters, exact.ranks[rank].parameters * versions);
    }
    threads_world().run(3, [&](World& world) {
      Cores cores(1);
      Team team(world, cores, true);
      PipeDreamEngine engine({.model = model.get(),
                              .make_optim = [] { return optim("sgd"); },
                              .fields = data->fields(),
                              .shards = 2,
                              .seed = 3,
                              .largest_shard = 6,
                              .plan = &plan},
                             team);
      data::LoaderOptions options{.seed = 3, .batches = {{0, 12}}, .prefetch = 0};
      engine.adapt(options);
      data::Loader loader(data, options);
      engine.run({.from = 0,
                  .to = 5,
                  .loader = &loader,
                  .lr = [](std::int64_t) { return 0.01; },
                  .epoch = [](std::int64_t) { return 0.0; },
                  .asks_to_stop = [] { return false; },
                  .on_progress = [](const StepProgress&) {}});
      EXPECT_EQ(engine.bytes(), view.ranks[static_cast<std::size_t>(world.rank())]);
    });
  }
}

TEST(PipeDream, StopsAllRanksAfterTheSameStep) {
  const auto data = data::make_synthetic("train", three_layers().data);
  const auto model = models::make_model("mlp", inputs_of(*data), three_layers().options);
  const PlanSpec plan = pipedream(1, 3);
  for (const Rank asks : {0, 2})
    threads_world().run(3, [&](World& world) {
      Cores cores(1);
      Team team(world, cores, true);
      const auto engine = make_engine({.model = model.get(),
                                       .make_optim = [] { return optim("sgd"); },
                                       .fields = data->fields(),
                                       .shards = 1,
                                       .seed = 3,
                                       .plan = &plan},
                                      12, nullptr, team);
      data::LoaderOptions options{.seed = 3, .batches = {{0, 12}}, .prefetch = 0};
      engine->adapt(options);
      data::Loader loader(data, options);
      int asked = 0;
      const Reached reached = engine->run({.from = 0,
                                           .to = 50,
                                           .loader = &loader,
                                           .lr = [](std::int64_t) { return 0.01; },
                                           .epoch = [](std::int64_t) { return 0.0; },
                                           .asks_to_stop = [&] { return world.rank() == asks && ++asked > 4; },
                                           .on_progress = [](const StepProgress&) {}});
      EXPECT_TRUE(reached.stop);
      EXPECT_LT(reached.step, 12);
      for (const std::int64_t step : team.all_gather_struct(reached.step)) EXPECT_EQ(step, reached.step);
    });
}

}  // namespace
}  // namespace echelon
