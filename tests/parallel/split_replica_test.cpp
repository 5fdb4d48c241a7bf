// Replicas of a composed system that are themselves split by a plan: the system's result is that of whole replicas
// wherever it does not depend on who comes first, and what several ranks of a replica have stays the same on them.

#include <gtest/gtest.h>

#include <atomic>

#include "collective/collectives.h"
#include "parallel/replica.h"
#include "tests/parallel/systems.h"
#include "tests/support/resident.h"
#include "tests/support/temp_dir.h"
#include "tests/world/all_worlds.h"

namespace echelon {
namespace {

using namespace test;

struct SplitJob {
  std::string system;
  Case network;
  PlanSpec plan;   // `data` is the number of replicas
  int shards = 4;  // of a batch
  int steps = 6;
  int resume_at = -1;        // everything goes through rank 0 and back, as in a checkpoint
  std::uint64_t batch = 14;  // with 60 samples the last one of an epoch is smaller, and parts differ
};

Case sliced_mlp() {
  return {"mlp",
          table({{"hidden", integers({18, 10})}, {"dropout", number(0.2)}, {"slices", integer(2)}}),
          {.kind = data::SyntheticOptions::Kind::blobs, .samples = 60, .shape = {12}, .classes = 4}};
}
Case sliced_gpt() {
  return {"gpt",
          table({{"width", integer(16)},
                 {"heads", integer(2)},
                 {"layers", integer(2)},
                 {"tied", Option{true}},
                 {"slices", integer(2)}}),
          {.kind = data::SyntheticOptions::Kind::tokens, .samples = 60, .shape = {9}, .classes = 11}};
}

const char* const local_sgd = "[rule]\nname = 'param_mean'\n[exchange]\nname = 'all_reduce'\n[when]\ntau = 2\n";
const char* const grad_owners = "[rule]\nname = 'grad_mean'\n[exchange]\nname = 'owner_shard'\n";
const char* const slow_momentum = "[rule]\nname = 'outer_momentum'\n[exchange]\nname = 'all_reduce'\n[when]\ntau = 2\n";
const char* const rounds_of_pushes =
    "[rule]\nname = 'grad_push'\n[exchange]\nname = 'server'\nservers = 'all'\n[sync]\nname = 'bsp'\n";
const char* const split_pushes =
    "[rule]\nname = 'grad_push'\n[exchange]\nname = 'server'\nservers = 'all'\n[sync]\nname = 'async'\n";
const char* const elastic =
    "[rule]\nname = 'elastic'\n[exchange]\nname = 'server'\n[when]\ntau = 2\n[sync]\nname = 'async'\n";

// The whole model at the end, then, where all workers report together, the losses; `look` sees the engine.
std::vector<float> train_split(World& outer, const SplitJob& j,
                               const std::function<void(Replica&, data::Loader&, Team&)>& look = {}) {
  Problems problems;
  const Composition composition = composition_of(j.system, problems);
  check_composition(composition, {.workers = j.plan.data, .split = j.plan.splits_model()}, problems);
  problems.throw_if_any("system");
  const auto data = data::make_synthetic("train", j.network.data);
  const auto model = models::make_model(j.network.name, inputs_of(*data), j.network.options);
  const auto world = make_metered(outer);
  Cores cores(1);
  Team team(*world, cores, true);
  const auto make = [&] {
    return make_engine({.model = model.get(),
                        .make_optim = [] { return optim("momentum"); },
                        .fields = data->fields(),
                        .shards = j.shards,
                        .seed = 3,
                        .plan = &j.plan},
                       j.batch, &composition, team);
  };
  auto engine = make();
  data::LoaderOptions options{.seed = 3, .batches = {{0, j.batch}}, .prefetch = 0};
  engine->adapt(options);
  data::Loader loader(data, options);
  std::vector<float> losses;
  const auto run = [&](std::int64_t from, std::int64_t to) {
    engine->run({.from = from,
                 .to = to,
                 .loader = &loader,
                 .lr = [](std::int64_t) { return 0.02; },
                 .epoch = [](std::int64_t) { return 0.0; },
                 .asks_to_stop = [] { return false; },
                 .on_progress =
                     [&](const StepProgress& p) {
                       losses.push_back(static_cast<float>(p.result.loss));
                       losses.push_back(static_cast<float>(p.result.samples));
                     }});
    engine->read_model();
  };
  if (j.resume_at > 0) {
    run(0, j.resume_at);
    engine->gather();
    std::vector<std::vector<std::byte>> kept;
    if (outer.rank() == 0)
      for (const StateSpan& s : engine->state()) kept.emplace_back(s.bytes.begin(), s.bytes.end());
    engine->end_gather();
    engine->close();
    engine = make();
    if (outer.rank() == 0) {
      const auto state = engine->state();
      for (std::size_t i = 0; i < kept.size(); ++i) std::ranges::copy(kept[i], state[i].bytes.begin());
    }
    engine->scatter();
  }
  run(std::max(j.resume_at, 0), j.steps);
  std::vector<float> left(engine->model().begin(), engine->model().end());
  if (!composition.uses_messages()) left.insert(left.end(), losses.begin(), losses.end());
  if (look) look(dynamic_cast<Replica&>(*engine), loader, team);
  engine->close();
  return left;
}

std::vector<float> simulate_split(const SplitJob& j, double latency = 1e-5) {
  const int workers = j.plan.data * j.plan.ranks_of_replica();
  std::vector<float> left;
  run_in_simulation(SimCluster::uniform(workers, latency, 1e9), {.seed = 7}, [&](World& world) {
    const auto mine = train_split(world, j);
    if (world.rank() == 0) left = mine;
  }).throw_if_failed();
  return left;
}

SplitJob with_steps(SplitJob job, int steps) {
  job.steps = steps;
  return job;
}

// Of the whole model, on the data that it was trained on.
double loss_of(const SplitJob& j, std::vector<float> weights) {
  const auto data = data::make_synthetic("train", j.network.data);
  const auto model = models::make_model(j.network.name, inputs_of(*data), j.network.options);
  LocalTeam alone(1);
  ParameterTable table;
  for (const auto& phase : model->training(1)) table.include(phase.graph);
  table.include(model->evaluation(1));
  Evaluator evaluator(*model, table, weights, data, 60, alone.team);
  return evaluator.run().loss;
}

// The same bits as whole replicas: what is exchanged is the same, stage by stage.
TEST(SplitReplica, InRoundsTheResultIsThatOfWholeReplicas) {
  for (const Case& network : {sliced_mlp(), cases()[1], sliced_gpt()})
    for (const char* system : {local_sgd, grad_owners, slow_momentum, rounds_of_pushes}) {
      const std::vector<float> whole = simulate_split({system, network, {.data = 2}});
      ASSERT_GT(whole.size(), 100u);
      for (const PlanSpec& plan : {PlanSpec{.data = 2, .pipeline = 2}, PlanSpec{.data = 2, .tensor = 2},
                                   PlanSpec{.data = 2, .pipeline = 2, .schedule = "gpipe", .recompute = "all"},
                                   PlanSpec{.data = 2, .pipeline = 2, .schedule = "zero_bubble"},
                                   PlanSpec{.data = 2, .pipeline = 2, .neighbours = "replicas"}}) {
        if (plan.tensor > 1 && !network.options.items.contains("slices")) continue;
        EXPECT_TRUE(same_bits(simulate_split({system, network, plan}), whole))
            << network.name << " with " << to_string(plan) << "\n"
            << system;
      }
    }
}

// GeePS: a worker that has no memory for its model fetches parameters from a file ahead of their use.
TEST(SplitReplica, AReplicaInFilesIsThatInMemory) {
  for (const Case& network : {sliced_mlp(), sliced_gpt()})
    for (const char* system : {local_sgd, rounds_of_pushes}) {
      const std::vector<float> whole = simulate_split({system, network, {.data = 2}});
      for (const PlanSpec& plan :
           {PlanSpec{.data = 2, .zero = 3, .offload = "/tmp", .offloads = "all"}, PlanSpec{.data = 2,
                                                                                  .zero = 3,
                                                                                  .prefetch = 4,
                                                                                  .recompute = "sqrt",
                                                                                  .offload = "/tmp",
                                                                                  .offloads = "all",
                                                                                  .evaluate = "first"}}) {
        EXPECT_TRUE(same_bits(simulate_split({system, network, plan}), whole)) << network.name << " " << system;
        SplitJob resumed{system, network, plan};
        resumed.resume_at = 4;
        EXPECT_TRUE(same_bits(simulate_split(resumed), whole)) << network.name << " " << system;
      }
    }
}

// What is not in use is not in memory: after a step neither parameters nor gradients are, though both were written.
TEST(SplitReplica, AReplicaInFilesLetsGoOfWhatItHasUsed) {
  SplitJob job{rounds_of_pushes,
               {"mlp",
                table({{"hidden", integers({300, 300, 300})}}),
                {.kind = data::SyntheticOptions::Kind::blobs, .samples = 60, .shape = {12}, .classes = 4}},
               {.data = 2, .zero = 3, .offload = "/tmp", .offloads = "all"}};
  run_in_threads(2, {}, [&](World& world) {
    train_split(world, job, [&](Replica& replica, data::Loader& loader, Team& team) {
      ReplicaTrainer& trainer = replica.trainer();
      const auto bytes = static_cast<long>(trainer.parameters().size_bytes());
      std::ranges::fill(trainer.gradient(), 0.0f);
      for (float& w : trainer.parameters()) w += 0.0f;
      EXPECT_GE(1024 * resident_kib(trainer.parameters().data()), bytes);
      barrier(team.group(), "before the step");
      trainer.compute(0, loader.at(0), 1);
      for (const std::span<float> values : {trainer.parameters(), trainer.gradient()})
        EXPECT_LT(1024 * resident_kib(values.data()), bytes / 4);
      std::ranges::fill(trainer.gradient(), 0.0f);
      for (float& w : trainer.parameters()) w += 0.0f;
      replica.exchange().before_step({.clock = job.steps, .due = true});
      replica.exchange().exchange({.step = job.steps, .clock = job.steps, .lr = 0.01, .share = 0.5});
      for (const std::span<float> values : {trainer.parameters(), trainer.gradient()})
        EXPECT_LT(1024 * resident_kib(values.data()), bytes / 4);
      replica.exchange().leave();
      replica.exchange().drain();
    });
  });
}

TEST(SplitReplica, TheWorldMakesNoDifferenceInRounds) {
  const SplitJob job{local_sgd, sliced_mlp(), {.data = 2, .pipeline = 2, .tensor = 2}};
  const std::vector<float> simulated = simulate_split(job);
  for (const WorldUnderTest& world : all_worlds()) {
    const TempDir dir;
    world.run(8, [&](World& w) {
      const auto left = train_split(w, job);
      if (w.rank() == 0) write_file_atomically(*make_real_disk(), dir.path() + "/left", std::as_bytes(std::span(left)));
    });
    const auto bytes = read_file(*make_real_disk(), dir.path() + "/left", 1 << 30);
    std::vector<float> left(bytes.size() / sizeof(float));
    std::memcpy(left.data(), bytes.data(), bytes.size());
    EXPECT_TRUE(same_bits(left, simulated)) << world.name;
  }
}

// Without waiting: a function of the simulated cluster, and its state can be saved and loaded.
TEST(SplitReplica, AtTheirOwnPaceARunRepeatsAndGoesOn) {
  for (const char* system : {split_pushes, elastic})
    for (PlanSpec plan : {PlanSpec{.data = 3, .pipeline = 2}, PlanSpec{.data = 3, .tensor = 2}}) {
      SplitJob job{system, sliced_mlp(), plan};
      job.shards = 6, job.batch = 18, job.steps = 12;
      const std::vector<float> once = simulate_split(job);
      EXPECT_TRUE(same_bits(simulate_split(job), once)) << to_string(plan);
      EXPECT_LT(loss_of(job, once), 0.98 * loss_of(job, simulate_split(with_steps(job, 0))));
      SplitJob resumed = job;
      resumed.resume_at = 6;
      EXPECT_TRUE(same_bits(simulate_split(resumed), simulate_split(resumed)));
      EXPECT_LT(loss_of(job, simulate_split(resumed)), loss_of(job, simulate_split(with_steps(job, 6))));
    }
}

TEST(SplitReplica, InRoundsItGoesOnAsIfNothingHadHappened) {
  for (const char* system : {local_sgd, slow_momentum, rounds_of_pushes})
    for (const PlanSpec& plan : {PlanSpec{.data = 2, .pipeline = 2}, PlanSpec{.data = 2, .tensor = 2}}) {
      SplitJob job{system, sliced_gpt(), plan};
      const std::vector<float> straight = simulate_split(job);
      job.resume_at = 4;
      const std::vector<float> resumed = simulate_split(job);
      EXPECT_TRUE(same_bits(resumed, straight)) << to_string(plan) << "\n" << system;
    }
}

// Servers of different stages take pushes in different orders, so a parameter that both parts of a replica have would
// become two: its owner hands it out before every step.
TEST(SplitReplica, WhatSeveralRanksOfAReplicaHaveIsTheSameOnThem) {
  SplitJob job{split_pushes, sliced_gpt(), {.data = 3, .tensor = 2}};
  job.shards = 6, job.batch = 18, job.steps = 4;
  SimCluster cluster = SimCluster::uniform(6, 1e-5, 1e9);
  using Values = std::map<std::string, std::vector<float>>;  // by parameter
  std::vector<Values> before(6), after(6);                   // by rank
  run_in_simulation(cluster, {.seed = 11}, [&](World& world) {
    train_split(world, job, [&](Replica& replica, data::Loader& loader, Team&) {
      ReplicaTrainer& trainer = replica.trainer();
      const auto copies = [&] {
        Values values;
        for (const auto& e : trainer.table().entries()) {
          const auto of_one = trainer.parameters().subspan(e.offset, e.size);
          values[e.parameter.name].assign(of_one.begin(), of_one.end());
        }
        return values;
      };
      const auto rank = static_cast<std::size_t>(world.rank());
      // As if another stage's server had been quicker.
      if (world.rank() % 2 == 1)
        for (float& w : trainer.parameters()) w += 0.5f;
      before[rank] = copies();
      trainer.compute(0, loader.at(0, static_cast<std::uint64_t>(world.rank() / 2)), 1);
      after[rank] = copies();
    });
  }).throw_if_failed();
  for (std::size_t first = 0; first < 6; first += 2) {
    int common = 0;
    for (const auto& [name, value] : after[first]) {
      if (!after[first + 1].contains(name)) continue;
      ++common;
      EXPECT_FALSE(same_bits(before[first].at(name), before[first + 1].at(name))) << name;
      EXPECT_TRUE(same_bits(value, after[first + 1].at(name))) << name;
      EXPECT_TRUE(same_bits(value, before[first].at(name))) << name << ": the owner's value counts";
    }
    EXPECT_GT(common, 0);
  }
}

TEST(SplitReplica, WhatCannotWorkIsRefusedWithTheReason) {
  const auto refused = [](const std::string& system) {
    Problems problems;
    check_composition(composition_of(system, problems), {.workers = 4, .split = true}, problems);
    return problems.text("system");
  };
  for (const char* system : {local_sgd, grad_owners, rounds_of_pushes, split_pushes, elastic})
    EXPECT_EQ(refused(system), "") << system;
  const std::string push = "[rule]\nname = 'grad_push'\n";
  EXPECT_NE(refused(push + "[exchange]\nname = 'shared_memory'\n[sync]\nname = 'async'\n").find("one memory"),
            std::string::npos);
  EXPECT_NE(
      refused(push + "[exchange]\nname = 'server'\nfactors = true\n[sync]\nname = 'async'\n").find("factors=false"),
      std::string::npos);
  EXPECT_NE(refused("[rule]\nname = 'grad_mean'\n[exchange]\nname = 'factors'\n").find("inputs and errors"),
            std::string::npos);
  for (const char* sync : {"quorum", "a_bsp", "value"})
    EXPECT_NE(refused(push + "[exchange]\nname = 'server'\n[sync]\nname = '" + sync + "'\n").find("would not hear"),
              std::string::npos)
        << sync;
}

}  // namespace
}  // namespace echelon
