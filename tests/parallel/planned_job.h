#pragma once
// A small training under any plan, in any world, and what it leaves behind: for tests that compare bits.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "parallel/engine.h"
#include "parallel/planned/planned_engine.h"
#include "plan/legal.h"
#include "plan/place.h"
#include "plan/stages.h"
#include "tests/parallel/small_networks.h"
#include "tests/support/temp_dir.h"
#include "tests/world/all_worlds.h"

namespace echelon::test {

struct PlannedJob {
  Case network;
  std::string rule = "momentum";
  Options rule_settings = {};
  int shards = 4, steps = 4;
  std::uint64_t batch = 18;  // with 60 samples the last batch of an epoch is smaller, and shards differ
  std::vector<Straggler> stragglers = {};
};

inline std::unique_ptr<const models::Model> model_of(const PlannedJob& j, const data::Dataset& data) {
  return models::make_model(j.network.name, inputs_of(data), j.network.options);
}

// Weights, then all optimizer state, then the losses: what a run leaves behind. `resume_at`: at that step everything
// goes through rank 0 and back, as in a checkpoint. `figures`: the engine's, at the end.
inline std::vector<float> train_planned(World& world, const PlannedJob& j, const PlanSpec& plan, int resume_at = -1,
                                        std::map<std::string, double>* figures = nullptr) {
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
                        .stragglers = j.stragglers,
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
  const auto all_figures = engine->figures();
  if (figures) figures->insert(all_figures.begin(), all_figures.end());
  engine->close();
  return left;
}

inline std::vector<float> train_whole(const PlannedJob& j) {
  const auto alone = make_world_alone();
  return train_planned(*alone, j, {});
}

// What rank 0 is left with; it alone has the state.
inline std::vector<float> train_planned_on(const WorldUnderTest& world, int ranks, const PlannedJob& j,
                                           const PlanSpec& plan, int resume_at = -1) {
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

inline PlanFacts facts_of(const PlannedJob& j, int workers) {
  const auto data = data::make_synthetic("train", j.network.data);
  const auto model = model_of(j, *data);
  PlanFacts facts{.workers = workers, .shards = j.shards};
  const Graph graph = optimise(std::move(model->training(4).front().graph));
  facts.slices = slices_of(graph);
  for (const LayerWork& l : layer_work(graph)) facts.layers.push_back(l.layer);
  return facts;
}

inline Case tied_gpt() {
  return {"gpt",
          table({{"width", integer(16)},
                 {"heads", integer(2)},
                 {"layers", integer(2)},
                 {"tied", Option{true}},
                 {"dropout", number(0.1)}}),
          cases()[5].data};
}

inline const WorldUnderTest& world_named(const std::string& name) {
  return *std::ranges::find(all_worlds(), name, &WorldUnderTest::name);
}

}  // namespace echelon::test
