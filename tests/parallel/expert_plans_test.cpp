// Experts on several ranks: rows go to the rank that has their expert and come back, and no bit changes.

#include "parallel/planned/plan_view.h"
#include "tests/parallel/planned_job.h"

namespace echelon {
namespace {

using namespace test;

PlannedJob experts_job(std::int64_t top, double capacity, double balance, std::int64_t slices = 4) {
  Case network = tied_gpt();
  network.options.items["experts"] = integer(4);
  network.options.items["experts_per_token"] = integer(top);
  network.options.items["capacity"] = number(capacity);
  network.options.items["balance"] = number(balance);
  network.options.items["slices"] = integer(slices);
  network.options.items["heads"] = integer(4);
  return {.network = network, .rule = "adamw", .rule_settings = table({{"clip_norm", number(0.5)}})};
}

// As recipes/plans/gshard.toml: all is data parallel but the experts.
PlanSpec all_to_all(const PlannedJob& job, int workers, int ways, const std::string& scheme) {
  PlanSpec plan{.tensor = ways};
  plan.layers = {{.match = "*", .split = "batch"}, {.match = "*.experts", .split = "experts"}};
  plan.scheme = scheme;
  PlanFacts facts = facts_of(job, workers);
  facts.slices = 4;
  const auto data = data::make_synthetic("train", job.network.data);
  facts.splits = layer_splits(optimise(std::move(model_of(job, *data)->training(4).front().graph)));
  const auto why = refusals(plan, facts);
  EXPECT_TRUE(why.empty()) << why.front();
  return plan;
}

TEST(ExpertPlans, AllToAllGivesTheBitsOfOneWorker) {
  for (const std::int64_t top : {1, 2})
    for (const double capacity : {0.5, 1.25}) {
      const PlannedJob job = experts_job(top, capacity, 0.01);
      const std::vector<float> whole = train_whole(job);
      for (const auto& [workers, ways, scheme] :
           {std::tuple(2, 2, "b"), {2, 2, "c"}, {4, 4, "c"}, {4, 2, "c"}, {4, 2, "a"}, {2, 2, "a"}})
        EXPECT_TRUE(same_bits(
            train_planned_on(world_named("threads"), workers, job, all_to_all(job, workers, ways, scheme)), whole))
            << top << " of 4 experts, capacity " << capacity << ", " << workers << " workers, " << ways << " ways, "
            << scheme;
    }
}

TEST(ExpertPlans, EveryWorldGivesTheSameBits) {
  const PlannedJob job = experts_job(2, 1.25, 0.01);
  const std::vector<float> whole = train_whole(job);
  for (const WorldUnderTest& world : all_worlds())
    EXPECT_TRUE(same_bits(train_planned_on(world, 4, job, all_to_all(job, 4, 4, "c"), 2), whole)) << world.name;
}

TEST(ExpertPlans, TheBalanceLossReachesTheRouter) {
  EXPECT_FALSE(same_bits(train_whole(experts_job(1, 1.25, 0)), train_whole(experts_job(1, 1.25, 0.1))));
}

// Between ranks only rows for experts and what comes back: two of those forward and two backward for every layer of
// experts, all ranks but the own one, and what one slot of capacity holds.
TEST(ExpertPlans, BytesSentAreThoseOfTheSlots) {
  const PlannedJob job = experts_job(1, 1, 0.01);
  const auto data = data::make_synthetic("train", job.network.data);
  const auto model = model_of(job, *data);
  const int ranks = 4, samples = 4;
  const PlanLayout layout(all_to_all(job, ranks, ranks, "c"), job.shards);
  const PlanView view = view_plan(*model, layout, samples, 2);
  const int tokens = 9, width = 16, layers = 2;
  const double slots =
      samples * tokens;  // capacity 1 and one expert a row: a fourth of the rows for each of four experts
  const double rows = slots * width * sizeof(float) * (ranks - 1) / ranks;
  // A rank sends its own micro-batch's rows, and for each of the others' the answers of its experts.
  for (const double sent : view.sent) EXPECT_EQ(sent, 2 * layers * 2 * rows);
  // A part of the experts' weights on each rank, everything else on all.
  std::int64_t experts = 0;
  for (const StageView& s : view.stages)
    if (s.stage % 2 == 1) {
      EXPECT_EQ(s.ranks, std::vector<int>{s.part});
      EXPECT_EQ(s.layers.size(), 1u);
      experts += s.weights;
    }
  EXPECT_EQ(experts, layers * 4 * (2 * 4 * width * width + 4 * width + width));
}

TEST(ExpertPlans, PredictedBytesAreCountedBytes) {
  const PlannedJob job = experts_job(2, 1.25, 0.01);
  for (const PlanSpec& plan :
       {all_to_all(job, 4, 4, "c"), all_to_all(job, 4, 2, "b"), PlanSpec{.data = 2, .tensor = 2}})
    world_named("threads").run(4, [&](World& world) {
      const auto data = data::make_synthetic("train", job.network.data);
      const auto model = model_of(job, *data);
      Cores cores(1);
      Team team(world, cores, true);
      auto engine = make_engine({.model = model.get(),
                                 .make_optim = [&] { return optim(job.rule, job.rule_settings); },
                                 .fields = data->fields(),
                                 .shards = job.shards,
                                 .seed = 3,
                                 .plan = &plan},
                                16, nullptr, team);
      data::LoaderOptions options{.seed = 3, .batches = {{0, 16}}, .prefetch = 0};
      engine->adapt(options);
      data::Loader loader(data, options);
      engine->run({.from = 0,
                   .to = 2,
                   .loader = &loader,
                   .lr = [](std::int64_t) { return 0.01; },
                   .epoch = [](std::int64_t) { return 0.0; },
                   .asks_to_stop = [] { return false; },
                   .on_progress = [](const StepProgress&) {}});
      const PlanView view = view_plan(*model, PlanLayout(plan, job.shards), 4, 2);
      std::map<std::string, double> figures;
      for (const auto& [name, value] : engine->figures()) figures[name] = value;
      for (int rank = 0; rank < 4; ++rank) {
        EXPECT_EQ(figures.at("stage_bytes_sent_rank_" + std::to_string(rank)),
                  2 * view.sent[static_cast<std::size_t>(rank)]);
        EXPECT_EQ(figures.at("bytes_rank_" + std::to_string(rank)),
                  static_cast<double>(view.ranks[static_cast<std::size_t>(rank)].all()));
      }
      engine->close();
    });
}

}  // namespace
}  // namespace echelon
