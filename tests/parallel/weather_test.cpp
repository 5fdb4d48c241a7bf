// A training of 8 ranks and 20 steps in a simulated cluster where things go wrong, by the seed: it ends with the
// weights of a clean run, or it stops with a reason that names a rank. And bugs that we plant are caught by the same
// seeds.

#include <gtest/gtest.h>

#include "parallel/step/trainer.h"
#include "tests/parallel/small_networks.h"
#include "tests/support/random_faults.h"
#include "world/sim/simulation.h"

namespace echelon {
namespace {

using namespace test;

constexpr int cluster_ranks = 8, cluster_steps = 20;

struct ClusterOutcome {
  SimReport report;
  std::vector<std::vector<float>> weights;  // by rank; empty if it did not end
};

// Everything but the trainers is the same for all seeds, and is made once.
class Cluster {
 public:
  Cluster() : data_(data::make_synthetic("train", network_.data)) {
    model_ = models::make_model(network_.name, inputs_of(*data_), network_.options);
    clean_ = run(0, {});
    clean_.report.throw_if_failed();
  }

  ClusterOutcome run(std::uint64_t seed, const FaultPlan& faults, const PlantedBugs& bugs = {}) const {
    ClusterOutcome outcome;
    outcome.weights.resize(cluster_ranks);
    const SimCluster cluster = SimCluster::uniform(cluster_ranks, 20e-6, 1.25e8, 1e8);
    outcome.report = run_in_simulation(cluster, {.seed = seed, .faults = faults, .bugs = bugs}, [&](World& world) {
      outcome.weights[static_cast<std::size_t>(world.rank())] = train(world);
    });
    return outcome;
  }

  double seconds() const { return clean_.report.seconds; }
  bool as_clean(const ClusterOutcome& o) const {
    for (std::size_t r = 0; r < o.weights.size(); ++r)
      if (!same_bits(o.weights[r], clean_.weights[r])) return false;
    return true;
  }

 private:
  std::vector<float> train(World& world) const {
    Cores cores(1);
    Team team(world, cores);
    Trainer trainer(
        {.model = model_.get(), .fields = data_->fields(), .shards = cluster_ranks, .seed = 3},
        [&] { return optim("momentum"); }, team);
    const auto own = static_cast<std::uint64_t>(world.rank());
    data::Loader loader(
        data_,
        {.seed = 3, .batches = {{0, 16}}, .shards = cluster_ranks, .own = data::IndexRange{own, 1}, .prefetch = 0});
    for (std::uint64_t step = 0; step < cluster_steps; ++step) trainer.step(step, 0.05, loader.at(step));
    return {trainer.parameters().begin(), trainer.parameters().end()};
  }

  Case network_{"mlp",
                table({{"hidden", integers({16})}}),
                {.kind = data::SyntheticOptions::Kind::blobs, .samples = 64, .shape = {12}, .classes = 4}};
  data::DatasetPtr data_;
  std::unique_ptr<const models::Model> model_;
  ClusterOutcome clean_;
};

// The clean result, or a reason. Returns whether it ended well.
bool expect_clean_or_named(const Cluster& cluster, std::uint64_t seed) {
  const FaultPlan plan = random_faults(seed, cluster_ranks, cluster.seconds());
  const ClusterOutcome outcome = cluster.run(seed, plan);
  if (outcome.report.ok()) {
    EXPECT_TRUE(cluster.as_clean(outcome)) << "seed " << seed << "\n" << to_text(plan);
    return true;
  }
  for (const SimFailure& f : outcome.report.failures)
    EXPECT_TRUE(f.crashed || f.text.find("rank ") != std::string::npos) << "seed " << seed << ": " << f.text;
  return false;
}

void expect_clean_or_named(std::uint64_t seeds) {
  const Cluster cluster;
  std::uint64_t finished = 0;
  for (std::uint64_t seed = 0; seed < seeds && !testing::Test::HasFailure(); ++seed)
    finished += expect_clean_or_named(cluster, seed);
  printf("%d of %d seeds ended with the clean run's weights, the others with a reason\n", static_cast<int>(finished),
         static_cast<int>(seeds));
  EXPECT_GT(finished, seeds / 4);
  EXPECT_LT(finished, seeds) << "the weather is too good";
}

TEST(Weather, TrainingEndsWithTheCleanWeightsOrANamedReason) { expect_clean_or_named(100); }
TEST(SlowWeather, AThousandSeeds) { expect_clean_or_named(1000); }

TEST(Weather, TheSameSeedIsTheSameStory) {
  const Cluster cluster;
  for (std::uint64_t seed : {3u, 17u, 40u}) {
    const FaultPlan plan = random_faults(seed, cluster_ranks, cluster.seconds());
    EXPECT_EQ(cluster.run(seed, plan).report.trace_hash, cluster.run(seed, plan).report.trace_hash);
  }
}

struct Planted {
  const char* name;
  bool PlantedBugs::*bug;
};

class WeatherPlanted : public testing::TestWithParam<Planted> {};

// With faults that a right program survives, every seed should end well: with the bug, some do not.
TEST_P(WeatherPlanted, BugIsCaughtByTheSeeds) {
  const Cluster cluster;
  PlantedBugs bugs;
  bugs.*GetParam().bug = true;
  int caught = 0, seeds = 0;
  for (std::uint64_t seed = 0; seed < 100 && caught == 0; ++seed, ++seeds) {
    const FaultPlan plan = random_faults(seed, cluster_ranks, cluster.seconds(), false);
    const ClusterOutcome right = cluster.run(seed, plan);
    ASSERT_TRUE(right.report.ok() && cluster.as_clean(right)) << "seed " << seed << "\n" << to_text(plan);
    const ClusterOutcome wrong = cluster.run(seed, plan, bugs);
    caught += !wrong.report.ok() || !cluster.as_clean(wrong);
  }
  EXPECT_GT(caught, 0);
  printf("%s: caught after %d seeds\n", GetParam().name, seeds);
}

INSTANTIATE_TEST_SUITE_P(Bugs, WeatherPlanted,
                         testing::Values(Planted{"skip_checksum", &PlantedBugs::skip_checksum},
                                         Planted{"accept_duplicates", &PlantedBugs::accept_duplicates},
                                         Planted{"deliver_out_of_order", &PlantedBugs::deliver_out_of_order},
                                         Planted{"never_retransmit", &PlantedBugs::never_retransmit},
                                         Planted{"ignore_epoch", &PlantedBugs::ignore_epoch},
                                         Planted{"short_timeout", &PlantedBugs::short_timeout}),
                         [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace echelon
