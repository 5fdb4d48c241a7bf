// Every shipped system, saved and loaded, goes on as if nothing had happened: to the bit, also where workers go at
// their own pace. Servers' optimizers, codecs' residuals, centres, clocks and tokens are part of what is saved.
//
// Who comes first decides about the weights, so both runs are given the same weather: every round begins at a full
// minute of the simulated clock, and all times are multiples of a power of two, so that no sum of them is rounded.
// Where workers write into one memory they are threads, and take turns.

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include "tests/parallel/systems.h"
#include "tests/run/shipped.h"
#include "world/mailbox/message_order.h"

namespace echelon {
namespace {

using namespace test;

constexpr int resumed_workers = 3;
constexpr std::int64_t half = 24;  // steps: a period of most systems

struct Saved {
  std::vector<std::vector<std::byte>> state;  // by rank's blob, on rank 0
  std::vector<float> model;
};

// What the ranks note about their messages, and whether they are to be done again.
struct Notes {
  std::vector<Buffer> of_rank;
  bool repeat = false, abandoned = false;
  std::uint64_t repeated = 0;
  Notes() {
    for (int r = 0; r < resumed_workers; ++r) {
      of_rank.emplace_back(MessageOrder::bytes());
      std::ranges::fill(of_rank.back().as<std::byte>(), std::byte{0});
    }
  }
};

struct ResumedOutcome {  // by rank
  std::vector<std::vector<float>> weights, models;
};

class ResumedSystem : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    Problems problems;
    composition_ = std::make_unique<Composition>(read_composition(
        {file_.name, file_.rule, file_.exchange, file_.when, file_.sync, file_.codec, file_.order}, problems));
    check_composition(*composition_, {.workers = resumed_workers}, problems);
    ASSERT_TRUE(problems.empty()) << problems.text(file_.path);
    if (composition_->exchange->traits().coordinates) GTEST_SKIP() << "no replica: tests/cli/systems_test.py";
    races_ = composition_->exchange->traits().shared_memory;
    if (races_) composition_->work.common = false;  // else turns would not say who does what
    optim_ = axis(file_.local, "optim");
    optim_.items.try_emplace("name", text("momentum"));
    network_.options.items.merge(Options(axis(file_.local, "model")).items);
  }

  std::unique_ptr<Composition> composition_;

  // Steps from `from` to `to` in rounds of that many, on what was saved before (if anything); saves at the end.
  // `slowest`: which machine is.
  ResumedOutcome run(std::int64_t from, std::int64_t to, Saved* before, Saved* after, std::int64_t round = half,
                     Notes* notes = nullptr, int slowest = resumed_workers - 1,
                     const std::function<void(std::int64_t)>& on_step = {}) {
    ResumedOutcome out{std::vector<std::vector<float>>(resumed_workers),
                       std::vector<std::vector<float>>(resumed_workers)};
    std::atomic<Rank> turn = 0;
    const auto program = [&](World& world) {
      const auto data = data::make_synthetic("train", network_.data);
      const auto model = models::make_model(network_.name, inputs_of(*data), network_.options);
      const auto meter = make_metered(world);
      Cores cores(1);
      Team team(*meter, cores, true);
      Replica replica(
          {.model = model.get(),
           .make_optim = [&] { return optim(std::get<std::string>(optim_.items.at("name").value), optim_); },
           .fields = data->fields(),
           .shards = 1,
           .seed = 3,
           .largest_shard = batch,
           .stragglers = {}},
          *composition_, team);
      if (before) load(world, replica, *before);
      std::optional<MessageOrder> order;
      const auto r = static_cast<std::size_t>(world.rank());
      if (notes && replica.follow(order.emplace(notes->of_rank[r].as<std::byte>(), 5))) {
        if (notes->repeat) {
          EXPECT_TRUE(order->rewind(1));
        }
        notes->repeated += order->noted();
        order->mark(1);
      }
      data::Loader loader(data, {.seed = 3,
                                 .batches = {{0, static_cast<std::uint64_t>(batch)}},
                                 .parts = resumed_workers,
                                 .part = static_cast<std::uint64_t>(world.rank()),
                                 .prefetch = 0});
      for (std::int64_t step = from; step < to; step += round) {
        if (!races_) wait_for_the_minute(world);
        replica.run({.from = step,
                     .to = step + round,
                     .loader = &loader,
                     .lr =
                         [&](std::int64_t) {  // asked for before each step
                           if (races_) wait_for(turn, world.rank());
                           return 0.02;
                         },
                     .epoch = [](std::int64_t s) { return static_cast<double>(s) / 8; },
                     .asks_to_stop =
                         [&] {  // asked after each step
                           if (races_) pass_on(turn);
                           return false;
                         },
                     .on_progress =
                         [&](const StepProgress& p) {
                           if (on_step) on_step(p.step);
                         }});
      }
      replica.read_model();
      out.models[r].assign(replica.model().begin(), replica.model().end());
      out.weights[r].assign(replica.trainer().parameters().begin(), replica.trainer().parameters().end());
      if (after) save(world, replica, *after);
      replica.close();
      if (notes) notes->abandoned = notes->abandoned || order->abandoned() || order->repeats();
    };
    if (races_)
      run_in_threads(resumed_workers, {}, program);
    else
      run_in_simulation(uneven_cluster(slowest), {.seed = 7}, program).throw_if_failed();
    return out;
  }

 private:
  static constexpr int batch = 32;

  // Each machine is half as fast as the one before, so that it is plain who comes first.
  static SimCluster uneven_cluster(int slowest) {
    SimCluster cluster = SimCluster::uniform(resumed_workers, 0x1p-17, 0x1p30, 0x1p33);
    for (int i = 0; i < resumed_workers; ++i)
      cluster.machines[static_cast<std::size_t>((slowest + 1 + i) % resumed_workers)].flops /= 1 << i;
    return cluster;
  }

  // All begin in the order of their ranks.
  static void wait_for_the_minute(World& world) {
    constexpr double minute = 64;
    world.sleep(minute * std::ceil(world.now() / minute) + 0x1p-20 * world.rank() - world.now());
  }

  static void wait_for(std::atomic<Rank>& turn, Rank rank) {
    for (Rank now = turn; now != rank; now = turn) turn.wait(now);
  }
  static void pass_on(std::atomic<Rank>& turn) {
    turn = (turn + 1) % resumed_workers;
    turn.notify_all();
  }

  static void save(World& world, Replica& replica, Saved& saved) {
    replica.gather();
    if (world.rank() != 0) return;
    for (const StateSpan& s : replica.state()) saved.state.emplace_back(s.bytes.begin(), s.bytes.end());
    saved.model.assign(replica.model().begin(), replica.model().end());
  }

  static void load(World& world, Replica& replica, const Saved& saved) {
    if (world.rank() == 0) {
      const auto state = replica.state();
      ASSERT_EQ(state.size(), saved.state.size());
      for (std::size_t i = 0; i < state.size(); ++i) {
        ASSERT_EQ(state[i].bytes.size(), saved.state[i].size());
        std::memcpy(state[i].bytes.data(), saved.state[i].data(), state[i].bytes.size());
      }
    }
    replica.scatter();
    EXPECT_TRUE(same_bits({replica.model().begin(), replica.model().end()}, saved.model)) << "another model was loaded";
  }

  const SystemFile file_ = read_system(*make_real_disk(), GetParam(), shipped);
  bool races_ = false;
  Options optim_;
  // Two hidden layers: systems that quantise leave the network's ends alone.
  Case network_ = {"mlp",
                   table({{"hidden", integers({12, 12})}}),
                   {.kind = data::SyntheticOptions::Kind::blobs, .samples = 256, .shape = {16}, .classes = 4}};
};

TEST_P(ResumedSystem, GoesOnFromWhereItWas) {
  Saved saved;
  run(0, half, nullptr, &saved);
  const ResumedOutcome resumed = run(half, 2 * half, &saved, nullptr);
  const ResumedOutcome whole = run(0, 2 * half, nullptr, nullptr);
  for (std::size_t r = 0; r < resumed_workers; ++r) {
    EXPECT_TRUE(same_bits(resumed.weights[r], whole.weights[r])) << "rank " << r << " trains differently";
    EXPECT_TRUE(same_bits(resumed.models[r], whole.models[r]));
  }
}

// The same steps on machines of which others are slow: where workers go at their own pace, the messages come in another
// order. Those who follow the notes come to the same bits, and to the end if the notes end in the middle.
TEST_P(ResumedSystem, IsDoneAgainInTheOrderOfItsMessages) {
  if (!composition_->follows_messages()) GTEST_SKIP() << "a clock decides";
  Saved saved;
  run(0, half, nullptr, &saved);
  Notes notes, half_of_them;
  bool copied = false;
  const auto crash = [&](std::int64_t step) {
    if (step < half + half / 2 || std::exchange(copied, true)) return;
    for (std::size_t r = 0; r < notes.of_rank.size(); ++r)
      std::ranges::copy(notes.of_rank[r].as<std::byte>(), half_of_them.of_rank[r].as<std::byte>().begin());
  };
  const ResumedOutcome once = run(half, 2 * half, &saved, nullptr, half, &notes, 2, crash);
  notes.repeat = half_of_them.repeat = true;
  const ResumedOutcome again = run(half, 2 * half, &saved, nullptr, half, &notes, 0);
  EXPECT_FALSE(notes.abandoned);
  EXPECT_EQ(notes.repeated > 0, composition_->uses_messages());
  for (std::size_t r = 0; r < resumed_workers; ++r)
    EXPECT_TRUE(same_bits(once.weights[r], again.weights[r])) << "rank " << r << " trains differently";
  if (!composition_->uses_messages()) return;
  EXPECT_LT(half_of_them.repeated, notes.repeated);
  run(half, 2 * half, &saved, nullptr, half, &half_of_them, 1);
  EXPECT_FALSE(half_of_them.abandoned);
}

// A round of steps ends when somebody wants to see the model. Servers in rounds are told that no more will come then,
// and must wait for everybody again when training goes on.
class ServersInRounds : public ResumedSystem {};

TEST_P(ServersInRounds, MissNobodyAfterTheModelWasRead) {
  const ResumedOutcome twice = run(0, 2 * half, nullptr, nullptr), once = run(0, 2 * half, nullptr, nullptr, 2 * half);
  for (std::size_t i = 0; i < once.models[0].size(); ++i) EXPECT_NEAR(twice.models[0][i], once.models[0][i], 1e-5);
}

// Else the test above would show nothing.
class OrderDecides : public ResumedSystem {};

TEST_P(OrderDecides, AboutTheWeights) {
  const ResumedOutcome one = run(0, half, nullptr, nullptr), other = run(0, half, nullptr, nullptr, half, nullptr, 0);
  EXPECT_FALSE(same_bits(one.weights[0], other.weights[0]));
}

INSTANTIATE_TEST_SUITE_P(Shipped, OrderDecides, testing::Values("downpour", "easgd", "gosgd"),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Shipped, ServersInRounds,
                         testing::Values("geeps", "mlnet", "mxnet_kvstore", "priority", "tictac"),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Shipped, ResumedSystem, testing::ValuesIn(system_names(*make_real_disk(), shipped)),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace echelon
