// Litz's micro-tasks: micro-batches that ranks take when they are free, and sums that do not depend on who took which.
#include "parallel/planned/micro_tasks.h"

#include <map>
#include <numeric>

#include "base/random.h"
#include "tests/parallel/planned_job.h"
#include "world/sim/simulation.h"

namespace echelon {
namespace {

using namespace echelon::test;

TEST(TaskList, EverybodyHasItsOwnUntilItHasNoneLeft) {
  TaskList list(4, 8);
  EXPECT_EQ(list.take(1), 2);
  EXPECT_EQ(list.take(1), 3);
  EXPECT_EQ(list.take(1), 1) << "the last one of the first of those that have most left";
  EXPECT_EQ(list.take(0), 0);
  EXPECT_EQ(list.take(0), 5);
}

TEST(TaskList, EveryMicroBatchIsTakenOnceWhoeverAsks) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    const Stream random({seed, 1, 1, 1});
    const int ranks = 1 + static_cast<int>(random.below(6, 0)), shards = 1 + static_cast<int>(random.below(20, 1));
    TaskList list(ranks, shards);
    std::map<int, int> times;
    for (std::uint64_t i = 0; i < 200; ++i)
      if (const int shard = list.take(static_cast<int>(random.below(static_cast<std::uint32_t>(ranks), 2 + i)));
          shard >= 0)
        ++times[shard];
    EXPECT_EQ(times.size(), static_cast<std::size_t>(shards));
    for (const auto& [shard, n] : times) EXPECT_EQ(n, 1) << shard;
  }
}

TEST(TakenSums, TheSumOverAllHasTheSameBitsWhoeverTookWhich) {
  constexpr std::size_t floats = 37;
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const Stream random({seed, 2, 2, 2});
    const int shards = 1 + static_cast<int>(random.below(17, 0)), ranks = 1 + static_cast<int>(random.below(4, 1));
    std::vector<std::vector<float>> contributions;
    for (int s = 0; s < shards; ++s) {
      auto& c = contributions.emplace_back(floats);
      for (std::size_t i = 0; i < floats; ++i)
        c[i] = random.uniform(100 + static_cast<std::uint64_t>(s) * floats + i) - 0.5f;
    }
    std::vector<float> expected(floats);
    std::vector<PartialSum> leaves;
    for (int s = 0; s < shards; ++s) leaves.push_back({s, s + 1, contributions[static_cast<std::size_t>(s)].data()});
    sum_over_shards(shards, leaves, 0, floats, expected.data());

    std::vector<TakenSums> of_rank(static_cast<std::size_t>(ranks), TakenSums(shards, floats));
    std::vector<std::vector<int>> taken(of_rank.size());
    for (int step = 0; step < 2; ++step) {
      for (std::size_t r = 0; r < of_rank.size(); ++r) of_rank[r].start_step(), taken[r].clear();
      std::vector<int> order(static_cast<std::size_t>(shards));
      std::iota(order.begin(), order.end(), 0);
      for (std::size_t i = order.size(); i-- > 1;)
        std::swap(order[i], order[random.below(static_cast<std::uint32_t>(i + 1), 5000 + i)]);
      for (const int s : order) {
        const std::size_t r = random.below(static_cast<std::uint32_t>(ranks), 9000 + static_cast<std::uint64_t>(s));
        of_rank[r].add(s, contributions[static_cast<std::size_t>(s)]);
        taken[r].push_back(s);
      }
      std::vector<PartialSum> all;
      for (std::size_t r = 0; r < of_rank.size(); ++r) {
        const auto sums = of_rank[r].sums();
        const auto nodes = TakenSums::nodes_of(shards, taken[r]);
        ASSERT_EQ(sums.size(), nodes.size());
        for (std::size_t i = 0; i < sums.size(); ++i) {
          EXPECT_EQ(sums[i].first, nodes[i].first);
          EXPECT_EQ(sums[i].last, nodes[i].last);
        }
        all.insert(all.end(), sums.begin(), sums.end());
      }
      std::ranges::sort(all, {}, &PartialSum::first);
      std::vector<float> got(floats);
      sum_over_shards(shards, all, 0, floats, got.data());
      EXPECT_TRUE(same_bits(got, expected)) << "seed " << seed;
    }
  }
}

const PlanSpec taken_freely(int ranks) { return {.data = ranks, .tasks = "free"}; }

TEST(MicroTasks, EveryWorldGivesTheBitsOfOneWorker) {
  const PlannedJob job{
      .network = tied_gpt(), .rule = "adamw", .rule_settings = table({{"clip_norm", number(0.5)}}), .shards = 8};
  const std::vector<float> whole = train_whole(job);
  for (const WorldUnderTest& world : all_worlds())
    for (const int ranks : {2, 3})
      EXPECT_TRUE(same_bits(train_planned_on(world, ranks, job, taken_freely(ranks)), whole))
          << world.name << ", " << ranks << " ranks";
}

TEST(MicroTasks, ACheckpointGoesOn) {
  const PlannedJob job{.network = cases()[2], .rule = "adam", .shards = 6};
  const std::vector<float> whole = train_whole(job);
  EXPECT_TRUE(same_bits(train_planned_on(world_named("threads"), 3, job, taken_freely(3), 2), whole));
}

// One worker is four times slower, on virtual time.
TEST(MicroTasks, ASlowWorkerDoesFewerOfThemAndTheBitsStay) {
  PlannedJob job{.network = cases()[1], .shards = 16, .steps = 3, .batch = 32};
  const std::vector<float> whole = train_whole(job);
  job.stragglers = {{.rank = 2, .factor = 4}};
  const auto seconds_of = [&](const PlanSpec& plan, std::map<std::string, double>& figures) {
    double seconds = 0;
    SimCluster cluster = SimCluster::uniform(4, 1e-6, 1e10);
    run_in_simulation(cluster, {.seed = 3}, [&](World& world) {
      const double began = world.now();
      const auto left = train_planned(world, job, plan, -1, world.rank() == 0 ? &figures : nullptr);
      if (world.rank() != 0) return;
      seconds = world.now() - began;
      EXPECT_TRUE(same_bits(left, whole)) << to_string(plan);
    }).throw_if_failed();
    return seconds;
  };
  std::map<std::string, double> fixed_figures, figures;
  const double fixed = seconds_of({.data = 4, .recompute = "all"}, fixed_figures);
  const double freely = seconds_of({.data = 4, .recompute = "all", .tasks = "free"}, figures);
  EXPECT_LT(figures.at("micro_batches_rank_2"), 0.6 * figures.at("micro_batches_rank_1"));
  double all = 0;
  for (int r = 0; r < 4; ++r) all += figures.at(fmt::format("micro_batches_rank_{}", r));
  EXPECT_EQ(all, 16 * 3);
  EXPECT_LT(freely, 0.7 * fixed);
}

}  // namespace
}  // namespace echelon
