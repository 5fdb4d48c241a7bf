// Systems between equals: mixing with neighbours, gossip, partial gradients. That each one's idea is alive.

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "parallel/exchanges/peer_graph.h"
#include "tests/parallel/systems.h"
#include "tests/world/all_worlds.h"

namespace echelon {
namespace {

using namespace test;

std::string peer_system(const std::string& rule, const std::string& exchange, const std::string& sync,
                        const std::string& codec = "none") {
  return fmt::format("[rule]\nname = '{}'\n[exchange]\n{}\n[sync]\nname = '{}'\n{}[codec]\nname = '{}'\n", rule,
                     exchange, sync, sync == "async" ? "work = 'own'\n" : "", codec);
}
const std::string d_psgd = peer_system("neighbour_mean", "name = 'neighbour'\ngraph = 'ring'", "bsp");
const std::string gosgd = peer_system("gossip_sum", "name = 'random_peer'\n[when]\nprobability = 0.3", "async");
const std::string walk = peer_system("gossip_walk", "name = 'random_peer'\n[when]\ntau = 2", "async");
const std::string malt = peer_system("neighbour_mean", "name = 'neighbour'\ngraph = 'halton'", "async");
const std::string ako = peer_system("grad_mean", "name = 'partial'\nslices = 3", "async");
const std::string dogwild = peer_system("grad_mean", "name = 'partial'\nslices = 3\ndrop = 0.1", "async");

// Replica r starts from 1 + amounts[r] times the same pattern.
auto apart(const std::vector<double>& amounts) {
  return [amounts](Replica& replica, Rank rank) {
    const std::span<float> w = replica.trainer().parameters();
    for (const TrainedSpan& s : replica.trainer().segments())  // there may be gaps between them, which nobody mixes
      for (std::size_t i = s.offset; i < s.offset + s.size; ++i)
        w[i] = static_cast<float>(1 + amounts[static_cast<std::size_t>(rank)] * std::sin(static_cast<double>(i % 13)));
  };
}

std::vector<double> mean_of(const std::vector<SystemResult>& all) {
  std::vector<double> mean(all[0].weights.size());
  for (const SystemResult& r : all)
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += r.weights[i] / static_cast<double>(all.size());
  return mean;
}

double distance_from_consensus(const std::vector<SystemResult>& all) {
  const auto mean = mean_of(all);
  double sum = 0;
  for (const SystemResult& r : all)
    for (std::size_t i = 0; i < mean.size(); ++i) sum += (r.weights[i] - mean[i]) * (r.weights[i] - mean[i]);
  return std::sqrt(sum);
}

double largest_distance(std::span<const float> a, const std::vector<double>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

// Cores so slow that messages come within a step: then all keep the same pace.
SimCluster even_pace(int workers) { return SimCluster::uniform(workers, 1e-6, 1e9, 1e7); }

// The second eigenvalue of a symmetric mixing matrix (its size: it may be negative) and its vector, by power iteration
// on what is left of the first.
std::pair<double, std::vector<double>> second_eigenvector(const PeerGraph& graph) {
  const auto n = static_cast<std::size_t>(graph.workers());
  std::vector<double> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = std::sin(static_cast<double>(i * i + 1));
  double value = 0;
  for (int k = 0; k < 5000; ++k) {
    double mean = 0, norm = 0;
    for (const double x : v) mean += x / static_cast<double>(n);
    for (double& x : v) x -= mean, norm += x * x;
    for (double& x : v) x /= std::sqrt(norm);
    std::vector<double> next(n);
    for (std::size_t i = 0; i < n; ++i) {
      const auto row = graph.round(static_cast<int>(i), 0);
      next[i] = row.own * v[i];
      for (const auto& link : row.from) next[i] += link.weight * v[static_cast<std::size_t>(link.peer)];
    }
    value = 0;
    for (const double x : next) value += x * x;
    value = std::sqrt(value);
    v = next;
  }
  for (double& x : v) x /= value;
  return {value, v};
}

// ---- D-PSGD

TEST(NeighbourMean, WithoutStepsConsensusDistanceShrinksByTheSecondEigenvalueEachRound) {
  for (const char* name : {"ring", "torus"}) {
    const PeerGraph graph(std::string(name) == "ring" ? PeerGraph::Kind::ring : PeerGraph::Kind::torus, 8);
    const auto [value, vector] = second_eigenvector(graph);
    ASSERT_GT(value, 0.3);
    ASSERT_LT(value, 0.95);
    double before = 0;
    for (int steps = 0; steps <= 4; ++steps) {
      const auto all = simulate_system(
          8, {.system = peer_system("neighbour_mean", fmt::format("name = 'neighbour'\ngraph = '{}'", name), "bsp"),
              .lr = 0,
              .steps = steps,
              .prepare = apart(vector)});
      const double now = distance_from_consensus(all);
      if (steps > 0) {
        EXPECT_NEAR(now / before, value, 1e-4) << name << " after " << steps;
      }
      before = now;
    }
  }
}

TEST(NeighbourMean, MixesTheWeightsFromBeforeTheStepAndAddsTheOwnStep) {
  const std::vector<double> amounts{0.5, -0.2, 0.1, 0.9, -0.4};
  const auto simulate = [&](const std::string& exchange, int steps) {
    return simulate_system(5, {.system = peer_system("neighbour_mean", "name = 'neighbour'\n" + exchange, "bsp"),
                               .rule = "sgd",
                               .steps = steps,
                               .batch = 40,
                               .prepare = apart(amounts)});
  };
  const auto start = simulate("", 0), alone = simulate("[when]\ntau = 100", 1), together = simulate("", 1);
  double step_size = 0;
  for (std::size_t r = 0; r < 5; ++r)
    for (std::size_t i = 0; i < start[r].weights.size(); ++i) {
      const double own = alone[r].weights[i] - start[r].weights[i];
      step_size = std::max(step_size, std::abs(own));
      const double mixed =
          (start[r].weights[i] + start[(r + 1) % 5].weights[i] + start[(r + 4) % 5].weights[i]) / 3.0 + own;
      ASSERT_NEAR(together[r].weights[i], mixed, 1e-5);
    }
  EXPECT_GT(step_size, 1e-3) << "or the test shows nothing";
}

TEST(NeighbourMean, OnePeerAGraphFileAndHalfPrecisionReachTheMeanToo) {
  for (const auto& [exchange, codec, tolerance] :
       {std::tuple{std::string("graph = 'one_peer'"), "none", 1e-6},
        {"graph = 'hypercube'", "fp16", 2e-3},
        {"graph = 'file'\nedges = \"0 1\\n1 2\\n2 3\\n3 0\\n0 2\"", "none", 1e-3}}) {
    const auto all =
        simulate_system(4, {.system = peer_system("neighbour_mean", "name = 'neighbour'\n" + exchange, "bsp", codec),
                            .lr = 0,
                            .steps = 12,
                            .prepare = apart({1, -1, 3, 0.5})});
    EXPECT_LT(distance_from_consensus(all), tolerance * 50) << exchange;
    EXPECT_LT(largest_distance(all[0].weights, mean_of(all)), tolerance) << exchange;
    double first = 1 + (1 - 1 + 3 + 0.5) / 4 * std::sin(1.0);
    EXPECT_NEAR(all[2].weights[1], first, tolerance) << exchange;
  }
}

TEST(NeighbourMean, AGraphThatCannotBeIsRefusedBeforeTheFirstStep) {
  const auto text_of = [](const std::string& exchange, int workers) {
    Problems problems;
    const Composition c = composition_of(peer_system("neighbour_mean", exchange, "bsp"), problems);
    check_composition(c, {.workers = workers}, problems);
    return problems.text("system");
  };
  EXPECT_NE(text_of("name = 'neighbour'\ngraph = 'hypercube'", 6).find("halton"), std::string::npos);
  EXPECT_NE(text_of("name = 'neighbour'\ngraph = 'file'\nedges = \"0 1\\n2\"", 4).find("cannot be used: line 2"),
            std::string::npos);
  EXPECT_NE(text_of("name = 'neighbour'\ngraph = 'file'", 4).find("file"), std::string::npos);
  EXPECT_EQ(text_of("name = 'neighbour'\ngraph = 'hypercube'", 8), "");
}

// ---- gossip

struct Tale {  // of a run: what each rank ended with
  std::vector<SystemResult> ranks;
  std::vector<double> shares;
};

Tale simulate_with_shares(int workers, const SystemJob& job) {
  Tale tale{std::vector<SystemResult>(static_cast<std::size_t>(workers)),
            std::vector<double>(static_cast<std::size_t>(workers))};
  run_in_simulation(even_pace(workers), {.seed = 7}, [&](World& world) {
    const auto r = static_cast<std::size_t>(world.rank());
    tale.ranks[r] = run_system(world, job, [&](Replica& replica) { tale.shares[r] = replica.weight_in_mean(); });
  }).throw_if_failed();
  return tale;
}

TEST(GossipSum, SharesSumToOneAtRestAndWithoutStepsAllReachTheMean) {
  const std::vector<double> amounts{1, -1, 2, 0.5, -3, 0, 1, 2};
  const double mean = 2.5 / 8;
  for (const std::string& s : {gosgd, peer_system("gossip_sum", "name = 'neighbour'\ngraph = 'one_peer'", "bsp"),
                               peer_system("gossip_sum", "name = 'neighbour'\ngraph = 'ring'", "async")})
    for (const int steps : {1, 7, 150}) {
      const Tale tale = simulate_with_shares(8, {.system = s, .lr = 0, .steps = steps, .prepare = apart(amounts)});
      double sum = 0;
      for (const double share : tale.shares) sum += share;
      EXPECT_NEAR(sum, 1, 1e-12);
      EXPECT_NE(tale.shares, std::vector<double>(8, 0.0));
      // The mean weighted by shares is the mean of the beginning at any time.
      EXPECT_NEAR(tale.ranks[0].model[1], 1 + mean * std::sin(1.0), 1e-5);
      if (steps < 150) continue;
      for (const SystemResult& r : tale.ranks) EXPECT_NEAR(r.weights[1], 1 + mean * std::sin(1.0), 1e-3);
    }
}

TEST(GossipSum, SharesMoveWithTheMessages) {
  const Tale tale = simulate_with_shares(4, {.system = gosgd, .lr = 0, .steps = 40});
  EXPECT_GT(std::ranges::max(tale.shares) - std::ranges::min(tale.shares), 0.01);
}

std::unique_ptr<PeerSide> peer_of(const std::string& rule, int workers) {
  Problems problems;
  const Composition c = composition_of(peer_system(rule, "name = 'random_peer'", "async"), problems);
  return c.rule->make_peer({.weights = {}, .gradient = {}, .workers = workers});
}

TEST(GossipWalk, AWalkingModelIsMergedByAgeAndTheMergerIsAsOldAsTheOlder) {
  const auto home = peer_of("gossip_walk", 4);
  std::vector<float> mine{0, 0}, in{8, -4};
  home->take(mine, in, {.weight = 30, .clock = 10});
  EXPECT_FLOAT_EQ(mine[0], 6);
  EXPECT_FLOAT_EQ(mine[1], -3);
  EXPECT_DOUBLE_EQ(home->give(1, 10), 30);
  EXPECT_DOUBLE_EQ(home->give(1, 15), 35) << "trained on here";
  home->take(mine, in, {.weight = 5, .clock = 15});
  EXPECT_DOUBLE_EQ(home->give(1, 15), 35) << "a younger one makes it no older";
  const auto fresh = peer_of("gossip_walk", 4);
  mine = {2, 2};
  fresh->take(mine, in, {.weight = 0, .clock = 0});
  EXPECT_FLOAT_EQ(mine[0], 5);
}

TEST(GossipWalk, WithoutStepsModelsAgreeByWalking) {
  const auto before =
      simulate_system(8, {.system = walk, .lr = 0, .steps = 1, .prepare = apart({8, 7, 6, 5, 4, 3, 2, 1})});
  const auto after =
      simulate_system(8, {.system = walk, .lr = 0, .steps = 150, .prepare = apart({8, 7, 6, 5, 4, 3, 2, 1})});
  EXPECT_LT(distance_from_consensus(after), 1e-3 * distance_from_consensus(before));
}

// Counts what is given and taken, and else leaves everything to the rule.
struct Count {
  std::atomic<int> given{0}, taken{0};
};
class CountingRule : public MergeRule {
 public:
  CountingRule(std::unique_ptr<const MergeRule> rule, Count& count) : rule_(std::move(rule)), count_(count) {}
  RuleTraits traits() const override { return rule_->traits(); }
  std::unique_ptr<PeerSide> make_peer(const ReplicaView& view) const override {
    class Side : public PeerSide {
     public:
      Side(std::unique_ptr<PeerSide> side, Count& count) : side_(std::move(side)), count_(count) {}
      double give(int peers, std::int64_t clock) override {
        count_.given += peers;
        return side_->give(peers, clock);
      }
      void take(std::span<float> mine, std::span<const float> in, const Gift& gift) override {
        ++count_.taken;
        side_->take(mine, in, gift);
      }

     private:
      std::unique_ptr<PeerSide> side_;
      Count& count_;
    };
    return std::make_unique<Side>(rule_->make_peer(view), count_);
  }

 private:
  std::unique_ptr<const MergeRule> rule_;
  Count& count_;
};

std::unique_ptr<PeerSide> gatherer(const std::string& gather) {
  Problems problems;
  const Composition c = composition_of(
      "[rule]\nname = 'neighbour_mean'\ngather = '" + gather + "'\n[exchange]\nname = 'neighbour'\n", problems);
  problems.throw_if_any("");
  return c.rule->make_peer({.weights = {}, .gradient = {}, .workers = 4});
}

TEST(Malt, GathersAsTheUserChooses) {
  const auto gathered = [](const std::string& gather) {
    const auto peer = gatherer(gather);
    std::vector<float> mine{0, 1};
    const std::vector<float> young{4, 1}, old{100, 1};
    peer->take(mine, young, {.mix = 0.5, .clock = 9, .sent_at = 9});
    peer->take(mine, old, {.mix = 1.0 / 3, .clock = 9, .sent_at = 29});
    peer->gathered(mine);
    peer->gathered(mine);  // nothing has come
    EXPECT_FLOAT_EQ(mine[1], 1) << gather;
    return mine[0];
  };
  EXPECT_FLOAT_EQ(gathered("mean"), 104.0f / 3);
  EXPECT_FLOAT_EQ(gathered("steps"), (10 * 0 + 10 * 4 + 30 * 100) / 50.0f);
  EXPECT_FLOAT_EQ(gathered("median"), 4);
}

// One of five begins far off, and does not move: the mean follows it, the median does not.
TEST(Malt, AMedianIsNotLedAwayByOneThatIsFarOff) {
  const auto farthest = [](const std::string& gather) {
    const auto all = simulate_system(
        5, {.system = "[rule]\nname = 'neighbour_mean'\ngather = '" + gather +
                      "'\n[exchange]\nname = 'neighbour'\ngraph = 'halton'\n[sync]\nname = 'async'\nwork = 'own'\n",
            .lr = 0,
            .steps = 6,
            .prepare = apart({0, 0, 1000, 0, 0})});
    return std::abs(all[0].weights[1] - 1);
  };
  EXPECT_GT(farthest("mean"), 1);
  EXPECT_LT(farthest("median"), 1e-3);
}

TEST(Malt, EverythingThatIsSentIsMerged) {
  Count count;
  SystemJob job{.system = malt, .lr = 0, .steps = 20, .prepare = apart({1, 2, 3, 4, 5, 6, 7, 8})};
  job.adapt = [&](Composition& c) { c.rule = std::make_unique<CountingRule>(std::move(c.rule), count); };
  const auto all = simulate_system(8, job, even_pace(8));
  EXPECT_EQ(count.given, 8 * 3 * 20);
  EXPECT_EQ(count.taken, count.given);
  job.steps = 0;
  EXPECT_LT(distance_from_consensus(all), 0.01 * distance_from_consensus(simulate_system(8, job, even_pace(8))));
}

TEST(Gossip, ALinkThatIsTooSlowLeavesMessagesOutAndStaysBounded) {
  Count count;
  SystemJob job{.system = peer_system("neighbour_mean", "name = 'neighbour'\ngraph = 'halton'\nwindow = 1", "async"),
                .steps = 60};
  job.adapt = [&](Composition& c) { c.rule = std::make_unique<CountingRule>(std::move(c.rule), count); };
  const auto all = simulate_system(4, job, SimCluster::uniform(4, 1e-5, 2e5));
  EXPECT_LT(count.given, 4 * 2 * 60 * 9 / 10);
  EXPECT_GT(count.given, 4 * 2 * 2);
  EXPECT_EQ(count.taken, count.given);
  EXPECT_EQ(all[0].reached, 60);
}

// ---- partial gradients

// Contributes its rank's own numbers in the first step and nothing afterwards, and adds up all that it is answered.
class OnceRule : public MergeRule {
 public:
  explicit OnceRule(std::vector<std::vector<double>>& answers) : answers_(answers) {}
  RuleTraits traits() const override { return {.sums = true, .answers_mean = true}; }
  static float number(Rank rank, std::size_t i) { return static_cast<float>((rank + 1) * (1 + i % 7)); }
  std::unique_ptr<WorkerSide> make_worker(const ReplicaView& view) const override {
    class Side : public WorkerSide {
     public:
      Side(const ReplicaView& view, std::vector<double>& sum) : view_(view), sum_(sum) {
        sum_.assign(view.weights.size(), 0);
      }
      void contribute(Range, double, std::span<float> out) override {
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = first_ ? number(view_.rank, i) : 0;
        first_ = false;
      }
      void apply(Range range, std::span<const float> answer) override {
        for (std::size_t i = 0; i < answer.size(); ++i) sum_[range.begin + i] += answer[i];
        std::ranges::fill(view_.gradient, 0.0f);
      }

     private:
      ReplicaView view_;
      std::vector<double>& sum_;
      bool first_ = true;
    };
    return std::make_unique<Side>(view, answers_[static_cast<std::size_t>(view.rank)]);
  }

 private:
  std::vector<std::vector<double>>& answers_;
};

std::vector<std::vector<double>> answers_after(int steps, const std::string& system) {
  std::vector<std::vector<double>> answers(5);
  SystemJob job{.system = system, .steps = steps, .batch = 40};
  job.adapt = [&](Composition& c) { c.rule = std::make_unique<OnceRule>(answers); };
  simulate_system(5, job, even_pace(5));
  return answers;
}

TEST(Partial, EverySliceOfEveryGradientArrivesExactlyOnce) {
  for (const char* slices : {"1", "3", "4", "9", "0"}) {
    const std::string s = peer_system("grad_mean", fmt::format("name = 'partial'\nslices = {}", slices), "async");
    for (const auto& sum : answers_after(40, s))
      for (std::size_t i = 0; i < sum.size(); ++i)
        ASSERT_EQ(sum[i], (1 + 2 + 3 + 4 + 5) * static_cast<double>(1 + i % 7)) << slices << " slices, number " << i;
  }
}

TEST(Partial, AStepCarriesOneSliceToEachPeerAndADifferentOneToEach) {
  const std::string s = peer_system("grad_mean", "name = 'partial'\nslices = 4", "async");
  // In two exchanges a peer gets two of the four slices; what has come by the second step is in the answers.
  const auto answers = answers_after(3, s);
  for (std::size_t r = 0; r < answers.size(); ++r) {
    const auto& sum = answers[r];
    std::vector<double> parts(4);
    for (int slice = 0; slice < 4; ++slice) {
      const Range range = part_of(slice, 4, sum.size());
      parts[static_cast<std::size_t>(slice)] = sum[range.begin] / static_cast<double>(1 + range.begin % 7);
      for (std::size_t i = range.begin; i < range.end; ++i)
        ASSERT_EQ(sum[i] / static_cast<double>(1 + i % 7), parts[static_cast<std::size_t>(slice)]) << "whole slices";
    }
    EXPECT_LT(parts[0] + parts[1] + parts[2] + parts[3], 4 * 15) << "not everything yet";
    EXPECT_GT(std::ranges::max(parts), std::ranges::min(parts));
    EXPECT_GT(std::ranges::min(parts), static_cast<double>(r + 1)) << "each peer has sent another slice";
  }
  // Its bytes are a quarter of the model's, to each of four peers.
  const auto few = simulate_system(5, {.system = s, .steps = 8, .batch = 40}, even_pace(5));
  const auto more = simulate_system(5, {.system = s, .steps = 16, .batch = 40}, even_pace(5));
  const double floats = static_cast<double>(few[0].weights.size());
  Problems problems;
  const auto expected =
      traffic_per_step(composition_of(s, problems), 5, few[0].pieces, few[0].buckets).bytes / 5 - 4 * floats;
  double bytes = 0;
  for (std::size_t r = 0; r < 5; ++r) bytes += static_cast<double>(more[r].sent.bytes - few[r].sent.bytes) / 5 / 8;
  EXPECT_NEAR(bytes, expected + 4 * floats, 1e-6);
  EXPECT_LT(bytes, 2 * 4 * floats) << "W to all four together, and messages' heads";
}

TEST(Partial, SlicesShrinkWithTheMeasuredLink) {
  const std::string s = peer_system("grad_mean", "name = 'partial'", "async");
  const auto bytes = [&](double rate) {
    double sum = 0;
    for (const auto& r : simulate_system(4, {.system = s, .steps = 40}, SimCluster::uniform(4, 1e-6, rate)))
      sum += static_cast<double>(r.sent.bytes);
    return sum;
  };
  EXPECT_GT(bytes(1e10), 2 * bytes(1e7));
}

TEST(Partial, LostMessagesAreLostAndTrainingGoesOn) {
  const std::string half = peer_system("grad_mean", "name = 'partial'\nslices = 3\ndrop = 0.5", "async");
  double arrived = 0, all = 0;
  for (const auto& sum : answers_after(40, half))
    for (std::size_t i = 0; i < sum.size(); ++i)
      arrived += sum[i] / static_cast<double>(1 + i % 7) - 3, all += 12;  // without the own
  EXPECT_GT(arrived / all, 0.25);
  EXPECT_LT(arrived / all, 0.75);
  EXPECT_GT(simulate_system(4, {.system = half, .steps = 60})[0].accuracy, 0.9);
}

TEST(Partial, ACodecNeedsSlicesThatStay) {
  Problems problems;
  const Composition c =
      composition_of(peer_system("grad_mean", "name = 'partial'\nslices = 0", "async", "one_bit"), problems);
  check_composition(c, {.workers = 4}, problems);
  EXPECT_NE(problems.text("").find("set exchange.slices"), std::string::npos);
  const auto all = simulate_system(
      4, {.system = peer_system("grad_mean", "name = 'partial'\nslices = 3", "async", "one_bit"), .steps = 60});
  EXPECT_GT(all[0].accuracy, 0.9);
}

// ---- all of them

TEST(Peers, EachSystemLearns) {
  for (const std::string& s : {d_psgd, gosgd, walk, malt, ako, dogwild}) {
    const auto all = simulate_system(4, {.system = s, .steps = 60});
    EXPECT_GT(all[0].accuracy, 0.9) << s;
    EXPECT_EQ(all[0].samples, 60 * 32) << s;
  }
}

TEST(Peers, AWorkerAloneTrainsToo) {
  for (const std::string& s : {d_psgd, gosgd, walk, malt, ako, dogwild})
    EXPECT_GT(simulate_system(1, {.system = s, .steps = 60})[0].accuracy, 0.9) << s;
}

class PeersInWorlds : public testing::TestWithParam<std::size_t> {};

TEST_P(PeersInWorlds, EachSystemRunsToItsEnd) {
  const WorldUnderTest& world = all_worlds()[GetParam()];
  for (const std::string& s : {d_psgd, malt, peer_system("gossip_sum", "name = 'random_peer'", "async", "fp16"),
                               peer_system("grad_mean", "name = 'partial'", "async")}) {
    SCOPED_TRACE(s);
    world.run(3, [&](World& w) {
      const SystemResult r = run_system(w, {.system = s, .steps = 8, .batch = 24});
      require(r.reached == 8, "all steps are done");
      require(std::isfinite(r.loss), "the loss is a number");
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, PeersInWorlds, testing::Range(std::size_t{0}, all_worlds().size()),
                         [](const auto& info) { return all_worlds()[info.param].name; });

}  // namespace
}  // namespace echelon
