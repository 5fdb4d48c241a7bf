// What makes a shipped system itself: if the line that says it were lost, it would still train, and only these would
// notice. Messages, bytes and times are compared with what the theory of each says, on a simulated cluster.

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>

#include "collective/all_reduce.h"
#include "parallel/replica.h"
#include "parallel/sum/coded_sum.h"
#include "recipe/prepare.h"
#include "run/job.h"
#include "tests/codec/cases.h"
#include "tests/parallel/systems.h"
#include "tests/run/shipped.h"
#include "tests/support/source_path.h"
#include "tests/support/temp_dir.h"

namespace echelon {
namespace {

using namespace test;

constexpr int idea_workers = 8;

SystemFile file_of(const std::string& name) { return read_system(*make_real_disk(), name, shipped); }

struct Cost {  // of a step, of all workers
  double messages = 0, bytes = 0, seconds = 0;
};

struct Measured {
  Cost cost;
  SystemResult result;
};

// A round has costs of its own, so this is the difference between a longer and a shorter one.
Measured run_of(const SystemFile& file, const SimCluster& cluster, SystemJob job = {}) {
  constexpr int steps = 4;
  job.system = tables_of(file);
  Measured run;
  for (const int times : {2, 1}) {
    job.steps = times * steps;
    const auto all = simulate_system(idea_workers, job, cluster);
    const double sign = times == 2 ? 1.0 / steps : -1.0 / steps;
    for (const SystemResult& r : all) {
      run.cost.messages += sign * static_cast<double>(r.sent.messages);
      run.cost.bytes += sign * static_cast<double>(r.sent.bytes);
    }
    run.cost.seconds += sign * all[0].seconds;
    run.result = all[0];
  }
  return run;
}

SystemFile in_one_bucket(const std::string& name) {
  SystemFile file = file_of(name);
  file.order.items = {{"name", text("whole")}};
  return file;
}

// So small a network would fit in one message otherwise.
SystemFile in_messages_of(const std::string& name, std::int64_t bytes) {
  SystemFile file = file_of(name);
  file.order.items["bytes"] = integer(bytes);
  return file;
}

constexpr double latency = 1e-3;
SimCluster of_latency() { return SimCluster::uniform(idea_workers, latency, 1e15, 1e15); }  // nothing else takes time
SimCluster two_hosts() {
  SimCluster cluster = SimCluster::uniform(2, latency, 1e15, 1e15);
  for (auto& machine : cluster.machines) machine.ranks = idea_workers / 2;
  return cluster;
}

struct Pattern {
  const char* system;
  SimCluster cluster;
  double messages, models;  // of an all-reduce, by all workers; the bytes of the model so many times
  double latencies;         // one after the other; 0: not the same for all
};

class AllReducePattern : public testing::TestWithParam<Pattern> {};

// Workers tell each other reports besides, the same under all systems. So this is against bsp, where every worker sends
// each owner its part and gets its sum: 2 n (n-1) messages, 2 (n-1) models; and against the latencies of rabenseifner.
TEST_P(AllReducePattern, IsTheAlgorithmsOwn) {
  const Pattern p = GetParam();
  const Measured own = run_of(in_one_bucket(p.system), p.cluster), bsp = run_of(in_one_bucket("bsp"), p.cluster);
  const double n = idea_workers, model = 4.0 * static_cast<double>(own.result.weights.size());
  EXPECT_NEAR(own.cost.messages - bsp.cost.messages, p.messages - 2 * n * (n - 1), 1e-6);
  EXPECT_NEAR(own.cost.bytes - bsp.cost.bytes, (p.models - 2 * (n - 1)) * model, 1e-6 * model);
  if (p.latencies == 0) return;
  const Measured halving = run_of(in_one_bucket("rabenseifner"), p.cluster);
  EXPECT_NEAR(own.cost.seconds - halving.cost.seconds, (p.latencies - 6) * latency, 0.01 * latency);
}

INSTANTIATE_TEST_SUITE_P(
    Shipped, AllReducePattern,
    testing::Values(Pattern{"firecaffe", of_latency(), 14, 14, 0},     // up a tree and down again
                    Pattern{"butterfly", of_latency(), 24, 24, 3},     // everything with a partner, log n times
                    Pattern{"rabenseifner", of_latency(), 48, 14, 6},  // halves, quarters, ... and back
                    Pattern{"gloo", of_latency(), 48, 14, 6},          // the same, for so little
                    Pattern{"horovod", of_latency(), 112, 14, 14},     // parts once round, and once more
                    Pattern{"hierarchical", two_hosts(), 16, 14, 0}),  // two trees of 4, and a ring of their firsts
    [](const auto& info) { return std::string(info.param.system); });

TEST(Gloo, TakesTheRingForWhatIsLargeAndFewRoundsForWhatIsSmall) {
  SystemFile file = in_one_bucket("gloo");
  const Measured small = run_of(file, of_latency());
  const auto bytes = static_cast<std::int64_t>(4 * small.result.weights.size());
  file.exchange.items["switch_bytes"] = integer(bytes + 1);
  EXPECT_NEAR(run_of(file, of_latency()).cost.messages, small.cost.messages, 1e-6);
  file.exchange.items["switch_bytes"] = integer(bytes);
  const double n = idea_workers;
  EXPECT_NEAR(run_of(file, of_latency()).cost.messages - small.cost.messages, 2 * n * (n - 1) - 48, 1e-6);
}

TEST(Fusion, SendsOneMessageForManyTensors) {
  const Measured fused = run_of(file_of("fusion"), of_latency());
  const Measured each = run_of(in_messages_of("wfbp", 64), of_latency());
  EXPECT_EQ(fused.result.buckets.size(), 1u);
  EXPECT_GE(each.result.buckets.size(), 2u);
  EXPECT_LT(fused.cost.messages, each.cost.messages);
  EXPECT_NEAR(fused.cost.messages, run_of(in_one_bucket("fusion"), of_latency()).cost.messages, 1e-6);
}

// A rule that remembers how much each shared side concludes.
class Counting : public MergeRule {
 public:
  Counting(std::unique_ptr<const MergeRule> inner, std::vector<std::size_t>& concluded)
      : inner_(std::move(inner)), concluded_(concluded) {}
  RuleTraits traits() const override { return inner_->traits(); }
  std::unique_ptr<WorkerSide> make_worker(const ReplicaView& view) const override { return inner_->make_worker(view); }
  std::unique_ptr<SharedSide> make_shared(const Place& place) const override {
    return std::make_unique<Side>(inner_->make_shared(place), concluded_);
  }

 private:
  class Side : public SharedSide {
   public:
    Side(std::unique_ptr<SharedSide> inner, std::vector<std::size_t>& concluded)
        : inner_(std::move(inner)), concluded_(concluded) {}
    void conclude(std::span<float> mean, double lr) override {
      concluded_.push_back(mean.size());
      inner_->conclude(mean, lr);
    }
    std::span<const float> answer() const override { return inner_->answer(); }
    std::vector<StateSpan> state() override { return inner_->state(); }

   private:
    std::unique_ptr<SharedSide> inner_;
    std::vector<std::size_t>& concluded_;
  };
  std::unique_ptr<const MergeRule> inner_;
  std::vector<std::size_t>& concluded_;
};

TEST(BigDl, ConcludesEveryNumberAtOneWorker) {
  std::vector<std::size_t> concluded;  // simulated workers are one thread
  SystemJob job{.system = tables_of(file_of("bigdl")), .steps = 1};
  job.adapt = [&](Composition& c) { c.rule = std::make_unique<Counting>(std::move(c.rule), concluded); };
  const auto all = simulate_system(idea_workers, job);
  ASSERT_EQ(concluded.size(), static_cast<std::size_t>(idea_workers));
  std::size_t sum = 0;
  for (const std::size_t part : concluded) {
    EXPECT_LE(part, all[0].weights.size() / idea_workers + 16);  // parts begin at cache lines
    sum += part;
  }
  EXPECT_EQ(sum, all[0].weights.size());
}

// Bytes of state that a worker has for the optimizer's step, at itself and for others.
std::size_t state_bytes(Replica& replica) {
  std::size_t bytes = 0;
  for (const auto& states : {replica.trainer().state(), replica.exchange().state()})
    for (const StateSpan& s : states) bytes += s.bytes.size();
  return bytes;
}

TEST(BigDl, KeepsAnEighthOfTheOptimizersStateAtEachOfEightWorkersAndMakesTheSameSteps) {
  std::vector<std::size_t> kept(idea_workers);
  const auto run = [](int workers, const std::string& system, std::vector<std::size_t>& bytes) {
    std::vector<float> model;
    run_in_simulation(SimCluster::uniform(workers, 1e-5, 1e9), {}, [&](World& world) {
      const auto rank = static_cast<std::size_t>(world.rank());
      const auto r = run_system(world, {.system = system, .rule = "adam", .lr = 0.01, .steps = 3},
                                [&](Replica& replica) { bytes[rank] = state_bytes(replica); });
      if (rank == 0) model = r.model;
    }).throw_if_failed();
    return model;
  };
  const auto owners = run(idea_workers, tables_of(file_of("bigdl")), kept);
  const std::size_t all = 3 * 4 * owners.size();                                            // weights and two averages
  for (const std::size_t bytes : kept) EXPECT_LE(bytes, all / idea_workers + 3 * 64 + 64);  // whole cache lines
  std::vector<std::size_t> everything(idea_workers);
  const auto whole = run(idea_workers, "[exchange]\nname = 'owner_shard'\n", everything);
  EXPECT_GE(everything[0], all * 2 / 3);  // the weights are the trainer's
  EXPECT_TRUE(same_bits(owners, whole));
}

// What a worker sends for matrices that are large against their factors.
double low_rank_bytes(int workers) {
  SystemJob job{.system = tables_of(in_one_bucket("low_rank")), .steps = 2};
  job.network = {"mlp",
                 table({{"hidden", integers({96})}}),
                 {.kind = data::SyntheticOptions::Kind::blobs, .samples = 256, .shape = {96}, .classes = 8}};
  const auto all = simulate_system(workers, job);
  return static_cast<double>(all[0].sent.bytes);
}

TEST(LowRank, SendsNoMoreBytesWithMoreWorkers) {
  const double two = low_rank_bytes(2), sixteen = low_rank_bytes(16);  // 1/2 of it twice, and 15/16
  EXPECT_LT(sixteen, 2.2 * two);
}

// With all of the rank, factors are the gradient itself: then P Q^T is that of the sum, not a sum of approximations.
TEST(LowRank, MakesTheFactorsOfTheSum) {
  const std::vector<CodecPiece> pieces{{.size = 24 * 20, .rows = 24}, {.size = 7}};
  const CodecMaker maker = test::codec_maker("name = 'low_rank'\nrank = 2\n");
  constexpr int n = 3;
  std::vector<float> left(n), right(n), difference(n);
  run_in_simulation(SimCluster::uniform(n, 1e-5, 1e9), {}, [&](World& world) {
    Group group = Group::everyone(world);
    const auto rank = static_cast<std::size_t>(world.rank());
    // Of rank 3 each, and of rank 2 in all: no worker alone can send its own.
    const auto number = [](std::size_t member, std::size_t i, std::size_t j) {
      const auto u = static_cast<float>(i % 5) - 2, v = static_cast<float>(j % 3),
                 own = static_cast<float>((i * j) % 7);
      const auto x = static_cast<float>(i % 4), y = static_cast<float>(j % 5) - 1;
      return u * v + x * y + (member == 0 ? own : member == 1 ? -own : 0);
    };
    std::vector<float> values(24 * 20 + 7), expected(values.size());
    for (std::size_t i = 0; i < 24; ++i)
      for (std::size_t j = 0; j < 20; ++j) {
        values[i * 20 + j] = number(rank, i, j);
        for (std::size_t m = 0; m < n; ++m) expected[i * 20 + j] += number(m, i, j);
      }
    for (std::size_t k = 0; k < 7; ++k) values[480 + k] = 1, expected[480 + k] = n;
    CodedSum sum(CodedSum::usual_way(CodedSum::Encoding::of(*maker(pieces)), values.size(), n), maker, pieces, n,
                 world.rank());
    sum.run(group, values, test::step_of(0));
    for (std::size_t i = 0; i < values.size(); ++i)
      difference[rank] = std::max(difference[rank], std::abs(values[i] - expected[i]));
    // Nothing is lost: what is left at all workers together is what is missing in the sum, which is nothing.
    std::vector<float> rest(values.size());
    sum.give_back(rest);
    all_reduce(group, std::span(rest));
    for (const float r : rest) left[rank] = std::max(left[rank], std::abs(r));
    for (const float v : values) right[rank] += v;
  }).throw_if_failed();
  for (std::size_t r = 0; r < n; ++r) {
    EXPECT_LT(difference[r], 1e-3);
    EXPECT_LT(left[r], 1e-3);
    EXPECT_EQ(right[r], right[0]);
  }
}

// Gradients a million times too large move the weights by no more than the limit allows.
TEST(Dgc, ClipsTheWholeGradientOfAWorkerByTheRootOfTheirNumber) {
  SystemJob job{.system = tables_of(file_of("dgc")), .rule = "sgd", .lr = 1, .steps = 1};
  const auto clip = static_cast<double>(std::get<std::int64_t>(file_of("dgc").codec.items.at("clip").value));
  std::vector<float> before;
  job.prepare = [&](Replica& replica, Rank) {
    for (float& w : replica.trainer().parameters()) w *= 1e3f;
    before.assign(replica.trainer().parameters().begin(), replica.trainer().parameters().end());
  };
  const auto moved = [&](int workers) {
    const auto all = simulate_system(workers, job);
    double sum = 0;
    for (std::size_t i = 0; i < before.size(); ++i) sum += std::pow(all[0].weights[i] - before[i], 2);
    return std::sqrt(sum);
  };
  for (const int workers : {2, 4, 16}) {
    EXPECT_LE(moved(workers), 1.0001 * clip / std::sqrt(workers)) << workers;  // all in one direction at the most
    EXPECT_GE(moved(workers), 0.1 * clip / workers) << workers;
  }
}

// On links that take as long as backward does.
struct Overlapping {
  const char* system;
  double bandwidth;
  double hidden;  // at least this share of what an exchange takes
};
class Overlap : public testing::TestWithParam<Overlapping> {};

TEST_P(Overlap, HidesTheExchangeBehindBackward) {
  SystemJob job;
  job.network = {"mlp",
                 table({{"hidden", integers({64, 64, 64, 64})}}),
                 {.kind = data::SyntheticOptions::Kind::blobs, .samples = 256, .shape = {64}, .classes = 64}};
  job.batch = 16;  // so few that factors are smaller
  const SimCluster cluster = SimCluster::uniform(idea_workers, 1e-6, GetParam().bandwidth, 6.25e7);
  const std::string system = GetParam().system;
  SystemFile file = in_messages_of(system, 64);
  const double overlapped = run_of(file, cluster, job).cost.seconds;
  file.order.items = {{"name", text("whole")}};
  const double after = run_of(file, cluster, job).cost.seconds;
  fmt::print("{}: {:.6f} s a step, {:.6f} s if all is sent after backward\n", system, overlapped, after);
  const double computing = run_of(file, SimCluster::uniform(idea_workers, 1e-9, 1e15, 6.25e7), job).cost.seconds;
  EXPECT_LT(overlapped, after - GetParam().hidden * (after - computing));
}

INSTANTIATE_TEST_SUITE_P(Shipped, Overlap,
                         testing::Values(Overlapping{"wfbp", 1e8, 0.5}, Overlapping{"horovod", 1e8, 0.5},
                                         Overlapping{"poseidon", 1e7, 0.1}),  // most of its time goes into products
                         [](const auto& info) { return std::string(info.param.system); });

// The weights that four steps of a recipe with this [optim] come to: less than the ten between two meetings.
std::string trained(const std::string& system, const std::string& optim) {
  const auto disk = make_real_disk();
  const TempDir dir;
  const std::string recipe = dir.path("recipe.toml");
  write_file_atomically(*disk, recipe,
                        "[model]\nname = 'mlp'\nhidden = [8]\n[data]\nkind = 'digits'\nlimit = 256\n[optim]\n" + optim +
                            "lr = 0.02\n[train]\nepochs = 1\nbatch = 64\nevaluate = false\n");
  Problems problems;
  const PreparedRun prepared =
      prepare_run(*disk, recipe, {"sync.work='own'"}, problems, {.root = "nowhere", .share = {source_path("share")}},
                  shipped[0] + "/" + system + ".toml");
  problems.throw_if_any(recipe);
  const TrainingJob job = make_job(prepared);
  std::string weights_text;
  run_in_simulation(SimCluster::uniform(2, 1e-5, 1e9), {}, [&](World& world) {
    const auto meter = make_metered(world);
    Cores cores(1);
    Team team(*meter, cores, true);
    Training training(job, *disk, world.clock(), team, "", 1);
    training.run(false);
    if (world.rank() == 0) {
      const auto weights = dynamic_cast<Replica&>(training.engine()).trainer().parameters();  // its own, not the centre
      weights_text = fmt::format("{}", fmt::join(weights, " "));
    }
  }).throw_if_failed();
  return weights_text;
}

TEST(Eamsgd, TakesNesterovsStepsAtTheWorkers) {
  const std::string own = trained("eamsgd", "name = 'sgd'\n");
  EXPECT_EQ(own, trained("easgd", "name = 'nesterov'\nmomentum = 0.9\n"));
  EXPECT_NE(own, trained("easgd", "name = 'sgd'\n"));
}

}  // namespace
}  // namespace echelon
