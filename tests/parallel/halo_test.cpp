// Features of a graph spread over workers: each has its own and borrows the halo's, and trains on the same samples.

#include "parallel/step/halo.h"

#include <gtest/gtest.h>

#include "data/graph/neighbourhoods.h"
#include "world/sim/simulation.h"
#include "world/wrappers/metered.h"

namespace echelon {
namespace {

TEST(Halo, BringsJustWhatAWorkersSamplesNeed) {
  constexpr int workers = 4;
  const auto graph = data::make_communities({.nodes = 400, .classes = 4, .features = 24, .degree = 4, .within = 0.95});
  const auto samples = data::make_neighbourhoods(graph, {3, 3});
  const data::BatchSequence batches(400, 40);
  const data::PartitionSpec partition{.fixed = true};
  std::vector<Halo> counts(workers);
  std::vector<double> sent(workers);
  run_in_simulation(SimCluster::uniform(workers, 1e-5, 1e9), {}, [&](World& world) {
    const auto meter = make_metered(world);
    Cores cores(1);
    Team team(*meter, cores, true);
    const auto rank = static_cast<std::size_t>(world.rank());
    const auto before = meter->sent()->bytes;
    const auto own = with_halo(samples, batches, partition, team, &counts[rank]);
    sent[rank] = static_cast<double>(meter->sent()->bytes - before);
    const auto parts = data::samples_of_parts(*samples, data::part_sizes(batches, workers), 0);
    data::Sample here(samples->fields()), there(samples->fields());
    for (const std::uint64_t i : parts[rank]) {
      own->get(i, {.seed = 3, .epoch = 2}, here.ref());
      samples->get(i, {.seed = 3, .epoch = 2}, there.ref());
      for (std::size_t f = 0; f < 3; ++f)
        EXPECT_TRUE(std::ranges::equal(here.field<float>(f), there.field<float>(f))) << "sample " << i;
    }
  }).throw_if_failed();
  double borrowed = 0, bytes = 0;
  for (int w = 0; w < workers; ++w) {
    const auto& c = counts[static_cast<std::size_t>(w)];
    EXPECT_EQ(c.own, 100u);
    EXPECT_GT(c.borrowed, 0u);
    EXPECT_LT(c.own + c.borrowed, 390u);  // not everything
    borrowed += static_cast<double>(c.borrowed), bytes += sent[static_cast<std::size_t>(w)];
  }
  EXPECT_EQ(bytes, borrowed * 24 * 4);
}

TEST(Halo, LeavesOtherSamplesAlone) {
  const auto samples =
      data::make_neighbourhoods(data::make_communities({.nodes = 40, .classes = 4, .features = 4}), {3});
  run_in_simulation(SimCluster::uniform(2, 1e-5, 1e9), {}, [&](World& world) {
    Cores cores(1);
    Team team(world, cores, true);
    EXPECT_EQ(with_halo(samples, data::BatchSequence(40, 8), {}, team), samples);  // dealt out anew in every epoch
  }).throw_if_failed();
}

}  // namespace
}  // namespace echelon
