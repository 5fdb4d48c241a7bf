#include "foresight/costs/platform.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"
#include "foresight/costs/collective_costs.h"
#include "foresight/outcomes.h"
#include "foresight/sweep.h"
#include "world/sim/memory_disk.h"
#include "world/sim/simulation.h"

namespace echelon::foresight {

namespace {

SimCluster two_switches() {
  SimCluster c;
  c.switches = {{"a", 1e8, 1e-5}, {"b", 1e8, 1e-5}};
  for (int m = 0; m < 4; ++m)
    c.machines.push_back({.name = "m", .ranks = 2, .bandwidth = 1e8, .latency = 5e-6, .attached_to = m / 2});
  return c;
}

// The time at which each message arrives in the simulated world, all sent at once.
std::vector<double> simulated(const SimCluster& cluster, const std::vector<std::pair<int, int>>& pairs,
                              std::size_t bytes) {
  std::vector<double> arrivals(pairs.size());
  run_in_simulation(cluster, {.eager_bytes = 1u << 30}, [&](World& world) {
    std::vector<std::byte> out(bytes);
    std::vector<Work> sends;
    for (std::size_t i = 0; i < pairs.size(); ++i)
      if (pairs[i].first == world.rank())
        sends.push_back(world.send(pairs[i].second, static_cast<Channel>(i), {}, out));
    for (std::size_t i = 0; i < pairs.size(); ++i)
      if (pairs[i].second == world.rank()) {
        std::vector<std::byte> in(bytes);
        Work work = world.receive(pairs[i].first, static_cast<Channel>(i), {}, in);
        work.wait(1e6);
        arrivals[i] = world.now();
      }
    for (Work& w : sends) w.wait(1e6);
  }).throw_if_failed();
  return arrivals;
}

TEST(Wires, ALoneMessageTakesWhatItTakesInTheSimulatedWorld) {
  const SimCluster cluster = two_switches();
  for (const auto& pair : std::vector<std::pair<int, int>>{{0, 1}, {0, 2}, {0, 7}}) {
    const Platform platform = Platform::of_cluster(cluster);
    Wires wires(platform);
    EXPECT_NEAR(wires.arrival(pair.first, pair.second, 1e6, 0), simulated(cluster, {pair}, 1'000'000)[0], 1e-9);
  }
}

TEST(Wires, MessagesOnOneLinkGoOneAfterTheOther) {
  const SimCluster cluster = two_switches();
  const std::vector<std::pair<int, int>> pairs{{0, 4}, {2, 6}};  // different NICs, the same uplink
  const Platform platform = Platform::of_cluster(cluster);
  Wires wires(platform);
  const std::vector<double> wanted = simulated(cluster, pairs, 1'000'000);
  for (std::size_t i = 0; i < pairs.size(); ++i)
    EXPECT_NEAR(wires.arrival(pairs[i].first, pairs[i].second, 1e6, 0), wanted[i], 1e-9) << i;
}

SimCluster torus(const std::vector<int>& shape) {
  SimCluster c;
  c.switches = {{"none", 1, 0}};
  c.torus = {.shape = shape, .bandwidth = 1e8, .latency = 1e-5};
  c.machines.assign(static_cast<std::size_t>(c.torus.machines()), {.name = "chip"});
  return c;
}

TEST(Wires, MessagesPassATorusAsInTheSimulatedWorld) {
  const SimCluster cluster = torus({3, 4});
  const std::vector<std::pair<int, int>> pairs{{1, 6}, {0, 2}, {5, 0}};  // the first two need the wire from 1 to 2
  const Platform platform = Platform::of_cluster(cluster);
  Wires wires(platform);
  const std::vector<double> wanted = simulated(cluster, pairs, 1'000'000);
  for (std::size_t i = 0; i < pairs.size(); ++i)
    EXPECT_NEAR(wires.arrival(pairs[i].first, pairs[i].second, 1e6, 0), wanted[i], 1e-9) << i;
}

// A job on some machines of a torus: messages pass the places of the others.
TEST(Wires, MessagesPassPlacesOfATorusThatHaveNoPartInTheJob) {
  SimCluster cluster = torus({3, 4});
  const Platform whole = Platform::of_cluster(cluster);
  cluster.machines.resize(9);  // of the last row only the first
  const Platform platform = Platform::of_cluster(cluster);
  Wires wires(platform), of_whole(whole);
  EXPECT_EQ(wires.arrival(3, 8, 1e6, 0), of_whole.arrival(3, 8, 1e6, 0));
  EXPECT_EQ(wires.arrival(8, 3, 1e6, 0), of_whole.arrival(8, 3, 1e6, 0));
}

TEST(CollectiveCosts, ATorusHasWiresEnoughForNeighboursAndTooFewForAll) {
  const Platform ring = Platform::of_cluster(torus({8}));
  std::vector<int> all(8);
  std::iota(all.begin(), all.end(), 0);
  // A rank's four forward distances pass 1 + 2 + 3 + 4 wires, so each wire forwards carries ten parts of the eighth.
  EXPECT_NEAR(owners_half(ring, all).per_byte, 10.0 / 8 / 1e8, 1e-15);
  EXPECT_NEAR(owners_half(ring, all).message, 4e-5, 1e-12);
  // Of many members a few are followed: on the whole of a torus that is exact.
  const Platform large = Platform::of_cluster(torus({300}));
  std::vector<int> many(300);
  std::iota(many.begin(), many.end(), 0);
  EXPECT_NEAR(owners_half(large, many).per_byte, 150.0 * 151 / 2 / 300 / 1e8, 1e-12);
}

TEST(CollectiveCosts, EverythingThatPassesASharedLinkIsAddedUp) {
  const Platform platform = Platform::of_cluster(two_switches());
  const std::vector<int> all{0, 1, 2, 3, 4, 5, 6, 7};
  // Four ranks behind each uplink send the four others an eighth of the sum each: sixteen eighths.
  EXPECT_NEAR(owners_half(platform, all).per_byte, 2.0 / 1e8, 1e-15);
  // Ranks 0 and 1 share a machine: no link is passed.
  EXPECT_LT(owners_half(platform, std::vector<int>{0, 1}).per_byte, 1e-9);
}

TEST(Outcomes, CorrectLaterPredictionsOfTheSameKind) {
  MemoryDisk disk;
  for (int i = 0; i < 5; ++i)
    save_outcome(disk, "f",
                 {.run = "r",
                  .model = "m",
                  .plan = "data=2",
                  .kind = "whole in memory",
                  .at = 1.0 + i,
                  .predicted = 1,
                  .measured = 1.5},
                 std::to_string(i));
  write_file_atomically(disk, "f/outcomes/broken.json", "{");
  const std::vector<Outcome> all = load_outcomes(disk, "f");
  ASSERT_EQ(all.size(), 5u);
  EXPECT_NEAR(correction_of(all, "whole in memory", "m"), 1.5, 1e-12);
  EXPECT_NEAR(correction_of(all, "whole in memory", "another"), 1.5, 1e-12);
  EXPECT_EQ(correction_of(all, "stages in memory", "m"), 1);
  EXPECT_NEAR(grade(all).median, 1.0 / 3, 1e-12);
  Prediction p{.seconds = 2, .compute = 1};
  correct(p, 1.5);
  EXPECT_EQ(p.seconds, 3);
  EXPECT_EQ(p.correction, 1.5);
}

TEST(Outcomes, CorrectOnlyWhereThatWouldHaveBeenBetter) {
  const auto outcomes = [](const std::string& model, std::vector<double> measured) {
    std::vector<Outcome> all;
    for (const double m : measured) all.push_back({.model = model, .kind = "k", .predicted = 1, .measured = m});
    return all;
  };
  EXPECT_EQ(correction_of(outcomes("m", {0.7, 1.0, 1.5}), "k", "m"), 1);  // they have nothing in common
  EXPECT_NEAR(correction_of(outcomes("m", {1.2, 1.25, 1.3}), "k", "m"), 1.25, 1e-12);
  // The model's own runs count before those of others.
  std::vector<Outcome> both = outcomes("m", {1.2, 1.25, 1.3});
  const std::vector<Outcome> others = outcomes("n", {2, 2, 2, 2, 2, 2, 2, 2, 2});
  both.insert(both.end(), others.begin(), others.end());
  EXPECT_NEAR(correction_of(both, "k", "m"), 1.25, 1e-12);
  EXPECT_NEAR(correction_of(both, "k", "n"), 2, 1e-12);
}

TEST(Outcomes, ThatCostsWereRefittedAfterCorrectNothingAnyMore) {
  std::vector<Outcome> all(5, {.kind = "whole in memory", .predicted = 1, .measured = 2});
  for (Outcome& o : all) o.refitted = true;
  EXPECT_EQ(correction_of(all, "whole in memory", ""), 1);
  const Outcome back = parse_outcome(to_json(all.front()).dump(), "here");
  EXPECT_TRUE(back.refitted);
}

TEST(Network, MessagesCostWhatTheTwoHostsWereMeasuredToCost) {
  Profile profile = empty_profile();
  profile.cores = 2;
  profile.hosts[{"a", "b"}] = {1e-5, 1e-9};
  profile.hosts[{"b", "c"}] = {1e-3, 1e-7};
  const LinkCosts otherwise{.latency = 2e-4, .per_byte = 5e-9, .host_latency = 1e-6, .host_per_byte = 1e-10};
  const Platform p = Platform::on_network(profile, {"a", "a", "b", "c"}, otherwise);
  EXPECT_EQ(p.machines(), 3);
  EXPECT_EQ(p.crowd(), 2);
  Wires wires(p);
  EXPECT_NEAR(wires.arrival(0, 1, 1e6, 0), 1e-6 + 1e-4, 1e-12);        // on one host
  EXPECT_NEAR(wires.arrival(0, 2, 1e6, 1), 1 + 1e-5 + 1e-3, 1e-12);    // a to b
  EXPECT_NEAR(wires.arrival(3, 2, 1e6, 10), 10 + 1e-3 + 0.1, 1e-12);   // c to b, in the other order
  EXPECT_NEAR(wires.arrival(1, 3, 1e6, 20), 20 + 2e-4 + 5e-3, 1e-12);  // a and c were never measured
  // Two messages from one host pass its NIC one after the other.
  const double first = wires.arrival(0, 2, 1e6, 30), second = wires.arrival(1, 2, 1e6, 30);
  EXPECT_NEAR(second - first, 1e-3, 1e-9);
  // A sum over all is as slow as the slowest pair.
  EXPECT_GE(owners_half(p, std::vector<int>{0, 1, 2, 3}).latency, 1e-3);
}

TEST(Sweeps, AreReadAndFindTheBend) {
  EXPECT_EQ(read_sweep("workers=1..1024"), std::pair(1, 1024));
  for (const char* bad : {"", "workers=4", "workers=8..4", "workers=0..3", "steps=1..2", "workers=1..2x"})
    EXPECT_THROW(read_sweep(bad), BadInput) << bad;
  EXPECT_EQ(worker_counts(1, 10), (std::vector<int>{1, 2, 4, 8, 10}));
  Sweep sweep;
  for (const auto& [workers, efficiency] :
       std::vector<std::pair<int, double>>{{1, 1.0}, {2, 0.95}, {4, 0.6}, {8, 0.3}}) {
    SweepPoint point{.workers = workers, .best = {}, .batch = 64, .shards = 64};
    point.best.efficiency = efficiency;
    point.best.prediction = {.seconds = 1, .compute = 0.5, .exchange = 0.5};
    sweep.points.push_back(point);
  }
  find_bend(sweep);
  EXPECT_EQ(sweep.bend, 4);
  EXPECT_NE(sweep.why.find("50 % of a step is sums"), std::string::npos) << sweep.why;
}

}  // namespace

}  // namespace echelon::foresight
