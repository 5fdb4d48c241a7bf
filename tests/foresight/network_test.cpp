// From networks to search problems, and from strategies to plans.

#include "foresight/search/network.h"

#include <gtest/gtest.h>

#include "foresight/plan_text.h"
#include "foresight/scaled_cluster.h"
#include "graph/program.h"
#include "models/zoo.h"
#include "recipe/cluster_file.h"
#include "run/plan_file.h"
#include "tests/support/source_path.h"

namespace echelon::foresight {

namespace {

SearchProblem alexnet_of_2014() {
  const auto disk = make_real_disk();
  const SimCluster cluster = read_cluster(*disk, source_path("recipes/clusters/gpus-2014.toml")).cluster;
  const Platform platform = Platform::of_cluster(cluster);
  models::InputSpec inputs = models::find_model("alexnet").usual_inputs();
  inputs.inputs.front().type = f32({3, 224, 224});
  inputs.classes = 1000;
  const auto model = models::make_model("alexnet", inputs);
  LayerTable table = layer_table(optimise(std::move(model->training(16).front().graph)), platform);
  table.shards = 64;  // a batch of 1024 on eight workers, as in the paper
  return search_problem(table, platform);
}

TEST(LayerWiseSearch, FindsOneWeirdTrickInAlexNet) {
  SearchProblem p = alexnet_of_2014();
  p.stages = false;
  for (const char* search : {"layer_wise", "markov", "mixed"}) {
    p.mixed = search == std::string_view("mixed");  // then each layer may have replicas and parts
    const Strategy found = find_search(p.mixed ? "layer_wise" : search)->find(p, {});
    bool split = false;
    for (std::size_t l = 0; l < p.layers.size(); ++l) {
      const std::string& name = p.layers[l].name;
      if (name.starts_with("conv")) {
        EXPECT_EQ(found.layers[l].parts, 1) << search << " " << to_string(p, found);
      } else if (name.starts_with("fc")) {
        split = true;
        EXPECT_GT(found.layers[l].parts, 1) << search << " " << to_string(p, found);
      }
    }
    EXPECT_TRUE(split);
    // It is much quicker than data parallelism alone, which Krizhevsky's point was.
    const std::vector<LayerPlace> data(p.layers.size(), {.replicas = p.devices});
    EXPECT_LT(found.seconds, 0.7 * strategy_seconds(p, data)) << search;
  }
}

TEST(SearchPlans, StagesWithEqualReplicasBecomeAPipelineWithCuts) {
  SearchProblem p{.layers = {{.name = "a"}, {.name = "b"}, {.name = "c"}}, .devices = 4, .links = {{.devices = 4}}};
  const PlanFacts facts{.workers = 4, .shards = 4, .layers = {"a", "b", "c"}};
  const Strategy equal{{{.stage = 0, .replicas = 2}, {.stage = 0, .replicas = 2}, {.stage = 1, .replicas = 2}}, 1};
  const auto plan = plan_of(p, equal, facts);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(echelon::to_string(*plan), "data=2,pipeline=2,schedule=1f1b,cuts=c");
  const Strategy unequal{{{.stage = 0, .replicas = 3}, {.stage = 0, .replicas = 3}, {.stage = 1, .replicas = 1}}, 1};
  EXPECT_FALSE(plan_of(p, unequal, facts).has_value());
}

TEST(SearchPlans, ASmallLayerAmongSplitOnesIsSplitToo) {
  SearchProblem p{.layers = {{.name = "conv", .weight_bytes = 1e6},
                             {.name = "fc1", .weight_bytes = 1e8, .splits = true},
                             {.name = "fc2", .weight_bytes = 1e6, .splits = true}},
                  .devices = 2,
                  .links = {{.devices = 2}}};
  const PlanFacts facts{.workers = 2, .shards = 2, .slices = 2, .layers = {"conv", "fc1", "fc2"}};
  const Strategy trick{{{.replicas = 2}, {.parts = 2}, {.replicas = 2}}, 1};
  const auto plan = plan_of(p, trick, facts);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->scheme, "c");
  p.layers[2].weight_bytes = 1e8;
  EXPECT_FALSE(plan_of(p, trick, facts).has_value());
}

TEST(PlanText, ComesBackAsTheSamePlan) {
  PlanSpec plan{.data = 2, .pipeline = 2, .schedule = "zero_bubble", .cuts = {"conv2"}, .zero = 1, .recompute = "sqrt"};
  PlanSpec trick{.data = 1, .tensor = 2};
  trick.scheme = "c";
  trick.layers = {{.match = "conv*", .split = "batch"}, {.match = "fc1", .split = {}, .stage = 1}};
  for (const PlanSpec& p : {plan, trick, PlanSpec{.data = 4, .evaluate = "first"}}) {
    Problems problems;
    const PlanFile file = parse_plan(plan_toml(p, "why\nand how"), "best.toml", problems);
    EXPECT_TRUE(problems.empty()) << problems.text("best.toml");
    EXPECT_TRUE(file.plan == p) << plan_toml(p);
  }
}

TEST(ScaledCluster, HasTheFirstRanksOrCopiesOfAll) {
  const auto disk = make_real_disk();
  const SimCluster racks = read_cluster(*disk, source_path("recipes/clusters/two-racks.toml")).cluster;
  const SimCluster few = scaled_cluster(racks, 3);
  EXPECT_EQ(few.ranks(), 3);
  EXPECT_EQ(few.machines.size(), 2u);
  const SimCluster many = scaled_cluster(racks, 100);
  EXPECT_EQ(many.ranks(), 100);
  EXPECT_EQ(many.switches.size() % racks.switches.size(), 0u);
  check(many);  // BadInput if a switch were missing
}

TEST(Clusters, AllFilesOfTheRepositoryCanBeRead) {
  const auto disk = make_real_disk();
  for (const std::string& name : disk->list(source_path("recipes/clusters"))) {
    const SimCluster cluster = read_cluster(*disk, source_path("recipes/clusters/" + name)).cluster;
    const Platform platform = Platform::of_cluster(cluster);
    EXPECT_GT(platform.ranks(), 1) << name;
    EXPECT_GT(platform.bytes_per_second(0, platform.ranks() - 1), 0) << name;
  }
}

}  // namespace

}  // namespace echelon::foresight
