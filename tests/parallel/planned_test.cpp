// A model that is split over ranks is trained to the same bits as a whole one.

#include <gtest/gtest.h>

#include <cstring>

#include "parallel/engine.h"
#include "parallel/planned/planned_engine.h"
#include "plan/stages.h"
#include "tests/parallel/small_networks.h"
#include "tests/support/allocations.h"
#include "tests/support/temp_dir.h"
#include "tests/world/all_worlds.h"

namespace echelon {
namespace {

using namespace test;

struct PlannedJob {
  Case network;
  std::string rule = "momentum";
  Options rule_settings = {};
  int shards = 4, steps = 4;
  std::uint64_t batch = 18;  // with 60 samples the last batch of an epoch is smaller, and shards differ
};

std::unique_ptr<const models::Model> model_of(const PlannedJob& j, const data::Dataset& data) {
  return models::make_model(j.network.name, inputs_of(data), j.network.options);
}

// Weights, then all optimizer state, then the losses: what a run leaves behind. `resume_at`: at that step everything
// goes through rank 0 and back, as in a checkpoint.
std::vector<float> train_planned(World& world, const PlannedJob& j, const PlanSpec& plan, int resume_at = -1) {
  const auto data = data::make_synthetic("train", j.network.data);
  const auto model = model_of(j, *data);
  Cores cores(1);
  Team team(world, cores, true);
  const auto make = [&] {
    return make_engine({.model = model.get(),
                        .make_optim = [&] { return optim(j.rule, j.rule_settings); },
                        .fields = data->fields(),
                        .shards = j.shards,
                        .seed = 3,
                        .plan = &plan},
                       j.batch, nullptr, team);
  };
  auto engine = make();
  data::LoaderOptions options{.seed = 3, .batches = {{0, j.batch}}, .prefetch = 0};
  engine->adapt(options);
  data::Loader loader(data, options);
  std::vector<float> left;
  const auto run = [&](std::int64_t from, std::int64_t to) {
    engine->run({.from = from,
                 .to = to,
                 .loader = &loader,
                 .lr = [](std::int64_t) { return 0.01; },
                 .epoch = [](std::int64_t) { return 0.0; },
                 .asks_to_stop = [] { return false; },
                 .on_progress =
                     [&](const StepProgress& p) {
                       left.push_back(static_cast<float>(p.result.loss));
                       left.push_back(static_cast<float>(p.result.correct));
                       left.push_back(static_cast<float>(p.result.gradient_norm));
                     }});
    engine->read_model();
  };
  if (resume_at > 0) {
    run(0, resume_at);
    engine->gather();
    std::vector<std::vector<std::byte>> kept;
    std::vector<float> weights(engine->model().begin(), engine->model().end());
    if (world.rank() == 0)
      for (const StateSpan& s : engine->state()) kept.emplace_back(s.bytes.begin(), s.bytes.end());
    engine->end_gather();
    engine = make();
    if (world.rank() == 0) {
      std::ranges::copy(weights, engine->model().begin());
      const auto state = engine->state();
      for (std::size_t i = 0; i < kept.size(); ++i) std::ranges::copy(kept[i], state[i].bytes.begin());
    }
    engine->scatter();
  }
  run(std::max(resume_at, 0), j.steps);
  left.insert(left.end(), engine->model().begin(), engine->model().end());
  engine->gather();
  if (world.rank() == 0)
    for (const StateSpan& s : engine->state()) {
      const std::size_t at = left.size();
      left.resize(at + s.bytes.size() / sizeof(float));
      std::memcpy(left.data() + at, s.bytes.data(), s.bytes.size());
    }
  engine->end_gather();
  engine->close();
  return left;
}

std::vector<float> train_whole(const PlannedJob& j) {
  const auto alone = make_world_alone();
  return train_planned(*alone, j, {});
}

// What rank 0 is left with; it alone has the state.
std::vector<float> train_planned_on(const WorldUnderTest& world, int ranks, const PlannedJob& j, const PlanSpec& plan,
                                    int resume_at = -1) {
  const TempDir dir;
  world.run(ranks, [&](World& w) {
    const auto left = train_planned(w, j, plan, resume_at);
    if (w.rank() == 0) write_file_atomically(*make_real_disk(), dir.path() + "/left", std::as_bytes(std::span(left)));
  });
  const auto bytes = read_file(*make_real_disk(), dir.path() + "/left", 1 << 30);
  std::vector<float> left(bytes.size() / sizeof(float));
  std::memcpy(left.data(), bytes.data(), bytes.size());
  return left;
}

PlanFacts facts_of(const PlannedJob& j, int workers) {
  const auto data = data::make_synthetic("train", j.network.data);
  const auto model = model_of(j, *data);
  PlanFacts facts{.workers = workers, .shards = j.shards};
  for (const LayerWork& l : layer_work(optimise(std::move(model->training(4).front().graph))))
    facts.layers.push_back(l.layer);
  return facts;
}

Case tied_gpt() {
  return {"gpt",
          table({{"width", integer(16)},
                 {"heads", integer(2)},
                 {"layers", integer(2)},
                 {"tied", Option{true}},
                 {"dropout", number(0.1)}}),
          cases()[5].data};
}

const WorldUnderTest& world_named(const std::string& name) {
  return *std::ranges::find(all_worlds(), name, &WorldUnderTest::name);
}

TEST(PlannedTraining, EveryLegalPlanOfSmallNetworksGivesTheSameBits) {
  int plans = 0;
  for (const Case& network : {cases()[0], cases()[1], cases()[2], cases()[3], tied_gpt()}) {
    PlannedJob job{.network = network, .steps = 4};
    if (network.name == "gpt") {
      job.rule = "adamw";
      job.rule_settings = table({{"clip_norm", number(0.5)}});
    }
    if (network.name == "resnet20") job.steps = 2;
    const std::vector<float> whole = train_whole(job);
    for (const int workers : {2, 3, 4, 6, 8})
      for (const PlanSpec& plan : legal_plans(facts_of(job, workers))) {
        if (!plan.splits_model()) continue;
        if (plan.chunks > 3 || (network.name == "resnet20" && workers > 4)) continue;  // the same once more
        ++plans;
        EXPECT_TRUE(same_bits(train_planned_on(world_named("threads"), workers, job, plan), whole))
            << network.name << ": " << to_string(plan);
      }
  }
  EXPECT_GE(plans, 60);
}

TEST(PlannedTraining, EveryWorldGivesTheSameBits) {
  const PlannedJob job{.network = tied_gpt(), .rule = "adamw", .rule_settings = table({{"clip_norm", number(0.5)}})};
  const std::vector<float> whole = train_whole(job);
  for (const WorldUnderTest& world : all_worlds())
    for (const PlanSpec& plan : {PlanSpec{.data = 2, .pipeline = 2, .schedule = "1f1b"},
                                 PlanSpec{.data = 1, .pipeline = 4, .schedule = "zero_bubble"}})
      EXPECT_TRUE(same_bits(train_planned_on(world, 4, job, plan), whole)) << world.name << ": " << to_string(plan);
}

TEST(PlannedTraining, NormsOfWholeParametersAreThoseOfTheWholeModel) {
  for (const char* rule : {"lars", "lamb"}) {
    const PlannedJob job{.network = tied_gpt(), .rule = rule};
    EXPECT_TRUE(
        same_bits(train_planned_on(world_named("threads"), 3, job, {.data = 1, .pipeline = 3}), train_whole(job)))
        << rule;
  }
}

TEST(PlannedTraining, ACheckpointGoesThroughRank0AndBack) {
  for (const Case& network : {cases()[2], tied_gpt()}) {
    const PlannedJob job{.network = network, .rule = "adam"};
    const std::vector<float> whole = train_whole(job);
    for (const PlanSpec& plan : {PlanSpec{.data = 2, .pipeline = 2},
                                 PlanSpec{.data = 1, .pipeline = 2, .chunks = 2, .schedule = "interleaved"},
                                 PlanSpec{.data = 1, .pipeline = 4, .schedule = "bidirectional"}})
      EXPECT_TRUE(same_bits(train_planned_on(world_named("threads"), plan.data * plan.pipeline, job, plan, 2), whole))
          << network.name << ": " << to_string(plan);
  }
}

}  // namespace
}  // namespace echelon
