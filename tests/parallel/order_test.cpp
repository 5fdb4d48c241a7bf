// The order on the wire: keys pushed while backward runs, the first layers' slices first, an order that all keep to.

#include <gtest/gtest.h>

#include <map>

#include "parallel/server/transfer_order.h"
#include "tests/parallel/systems.h"
#include "tests/support/says.h"
#include "world/mailbox/mailbox.h"

namespace echelon {
namespace {

using namespace test;

SystemJob deep(const std::string& order, const std::string& exchange = "") {
  SystemJob job{.system = "[rule]\nname = 'grad_push'\n[exchange]\nname = 'server'\nservers = 'all'\n" + exchange +
                          "\n[sync]\nname = 'bsp'\n[order]\n" + order,
                .steps = 8};
  job.network = {"mlp",
                 table({{"hidden", integers({96, 96, 96, 96, 96})}}),
                 {.kind = data::SyntheticOptions::Kind::blobs, .samples = 256, .shape = {16}, .classes = 4}};
  return job;
}

// 100 Mbit/s, and computing that takes about as long.
SimCluster slow_links() { return SimCluster::uniform(4, 1e-4, 12.5e6, 1e8); }

std::map<std::string, double> figures_of(const SystemJob& job) {
  std::map<std::string, double> all;
  run_in_simulation(slow_links(), {.seed = 7}, [&](World& world) {
    const SystemResult result = run_system(world, job, [&](Replica& replica) {
      for (const Figure& f : replica.figures()) all[f.first] = f.second;
    });
    if (world.rank() == 0) all["seconds"] = result.seconds, all["accuracy"] = result.accuracy;
  }).throw_if_failed();
  return all;
}

TEST(Order, TheModelDoesNotDependOnIt) {
  const auto whole = simulate_system(2, deep("name = 'whole'"));
  for (const char* order : {"name = 'backward'", "name = 'fusion'\nbytes = 4096", "name = 'priority'\nbytes = 1024",
                            "name = 'enforced'\nbytes = 1024"}) {
    SCOPED_TRACE(order);
    const auto other = simulate_system(2, deep(order));
    EXPECT_TRUE(same_bits(other[0].model, whole[0].model));
    EXPECT_TRUE(same_bits(other[1].model, whole[0].model));
  }
}

TEST(Order, TheModelDoesNotDependOnItWhereAWorkerHasSeveralCores) {
  SystemJob job = deep("name = 'whole'");
  job.shards = 4, job.cores = 2;
  const auto whole = thread_system(2, job);
  for (const char* order :
       {"name = 'backward'\nbytes = 64", "name = 'priority'\nbytes = 1024", "name = 'enforced'\nbytes = 1024"}) {
    SCOPED_TRACE(order);
    job.system = deep(order).system;
    const auto other = thread_system(2, job);
    EXPECT_TRUE(same_bits(other[0].model, whole[0].model));
    EXPECT_TRUE(same_bits(other[1].model, whole[0].model));
  }
}

TEST(Order, ForwardWaitsForItsWeightsAlsoWhileSomebodyWatches) {
  SystemJob job = deep("name = 'priority'\nbytes = 1024");
  const auto alone = simulate_system(4, job, slow_links());
  int seen = 0;
  job.prepare = [&](Replica& replica, Rank) {
    replica.watch({.now = [] { return 0.0; }, .on_node = [&](int, const Node&, double, double) { ++seen; }});
  };
  EXPECT_TRUE(same_bits(simulate_system(4, job, slow_links())[0].model, alone[0].model));
  EXPECT_GT(seen, 0);
}

TEST(Order, SendingWhileBackwardRunsIsFasterThanAfterIt) {
  for (const char* sync : {"bsp", "async", "ssp"}) {
    SCOPED_TRACE(sync);
    const auto seconds = [&](const std::string& order) {
      SystemJob job = deep(order, "planned = false");
      job.system.replace(job.system.find("'all'"), 5, "1");
      job.system.replace(job.system.find("'bsp'"), 5, fmt::format("'{}'", sync));
      return figures_of(job)["seconds"];
    };
    EXPECT_LT(seconds("name = 'backward'\nbytes = 64"), 0.95 * seconds("name = 'whole'"));
  }
}

TEST(Order, WithoutANameItIsBackwardWhereThatIsPossible) {
  const auto order_of = [](const std::string& system) {
    Problems problems;
    const Composition c = composition_of(system, problems);
    check_composition(c, {.workers = 4}, problems);
    EXPECT_TRUE(problems.empty()) << system << problems.text("");
    return c.order_name;
  };
  EXPECT_EQ(order_of(""), "backward");
  EXPECT_EQ(order_of("[rule]\nname = 'grad_push'\n[exchange]\nname = 'server'\n[sync]\nname = 'async'\n"), "backward");
  EXPECT_EQ(order_of("[rule]\nname = 'param_mean'\n[exchange]\n[when]\ntau = 4\n"), "whole");
  EXPECT_EQ(order_of("[rule]\nname = 'grad_mean'\n[exchange]\nname = 'owner_shard'\n"), "whole");
  EXPECT_EQ(order_of("[rule]\nname = 'grad_push'\n[exchange]\nname = 'server'\n[sync]\nname = 'quorum'\n"), "whole");
}

TEST(Order, WhatWouldNotBeKeptIsRefused) {
  const auto refusal = [](const std::string& system) {
    Problems problems;
    const Composition c = composition_of(system, problems);
    check_composition(c, {.workers = 4}, problems);
    return problems.text("");
  };
  const std::string servers = "[rule]\nname = 'grad_push'\n[exchange]\nname = 'server'\n";
  EXPECT_TRUE(says(refusal("[rule]\nname = 'param_mean'\n[order]\nname = 'fusion'\n"), "take order whole"));
  EXPECT_TRUE(says(refusal("[exchange]\nname = 'owner_shard'\n[order]\nname = 'backward'\n"), "take order whole"));
  EXPECT_TRUE(
      says(refusal(servers + "[when]\nn_push = 2\n[sync]\nname = 'async'\n[order]\nname = 'backward'\n"), "n_push"));
  EXPECT_TRUE(says(refusal(servers + "[sync]\nname = 'quorum'\n[order]\nname = 'backward'\n"), "take order whole"));
  EXPECT_TRUE(says(refusal(servers + "[sync]\nname = 'async'\n[order]\nname = 'priority'\n"), "take sync bsp"));
  EXPECT_TRUE(says(refusal("[exchange]\nname = 'server'\n[order]\nname = 'enforced'\n"), "take rule grad_push"));
}

TEST(Order, EveryBucketDrawsItsOwnRandomNumbers) {
  SystemJob job{.system = "[codec]\nname = 'random_k'\nshare = 0.5\n[order]\nname = 'fusion'\nbytes = 64\n",
                .rule = "sgd",
                .steps = 1};
  job.network.options = table({{"hidden", integers({16, 16})}});  // two matrices of the same size
  SystemJob none = job;
  none.lr = 0;
  const auto moved = simulate_system(2, job)[0], before = simulate_system(2, none)[0];
  std::vector<std::vector<char>> masks;
  for (const Range& r : moved.buckets)
    if (r.count() == 256) {
      masks.emplace_back();
      for (std::size_t i = r.begin; i < r.end; ++i) masks.back().push_back(moved.model[i] != before.model[i]);
    }
  ASSERT_EQ(masks.size(), 2u);
  EXPECT_NE(masks[0], masks[1]);
}

TEST(Order, TheFirstLayersFirstIsFasterThanFirstComeFirstServed) {
  auto priority = figures_of(deep("name = 'priority'\nbytes = 8192"));
  auto fifo = figures_of(deep("name = 'backward'"));
  auto same_slices = figures_of(deep("name = 'enforced'\nbytes = 8192"));  // waited for as late, sent as they come
  EXPECT_LT(priority["seconds"], 0.97 * fifo["seconds"]);
  EXPECT_LT(priority["seconds"], 0.97 * same_slices["seconds"]);
}

TEST(Order, EnforcedMeansThatAnswersComeInTheOrderOfForwardEverywhere) {
  EXPECT_EQ(figures_of(deep("name = 'enforced'\nbytes = 4096")).at("answers_out_of_order"), 0);
  EXPECT_GT(figures_of(deep("name = 'priority'\nbytes = 4096")).at("answers_out_of_order"), 0);
}

// Two branches that meet: a is short on the wire and much is computed with it, b the other way round. c waits for both.
TEST(OrderByTimes, WhatLetsMoreComputingBeginGoesFirst) {
  const Range a{0, 10}, b{10, 20}, c{20, 30};
  const std::vector<ForwardNode> nodes{
      {.seconds = 1, .reads = {b}}, {.seconds = 8, .reads = {a}}, {.seconds = 1, .reads = {c}, .after = {0, 1}}};
  const auto transfer = [&](Range r) { return r.begin == b.begin ? 8.0 : 1.0; };
  const auto begins = [&](const std::vector<Range>& order) {
    std::vector<std::size_t> list;
    for (const Range& r : order) list.push_back(r.begin);
    return list;
  };
  EXPECT_EQ(begins(exchanges::order_by_times(nodes, transfer)), (std::vector<std::size_t>{0, 10, 20}));
  const auto other_way = [&](Range r) { return r.begin == a.begin ? 8.0 : 1.0; };
  const std::vector<ForwardNode> mirrored{
      {.seconds = 8, .reads = {b}}, {.seconds = 1, .reads = {a}}, {.seconds = 1, .reads = {c}, .after = {0, 1}}};
  EXPECT_EQ(begins(exchanges::order_by_times(mirrored, other_way)), (std::vector<std::size_t>{10, 0, 20}));
}

// One branch after the other is the best that a chain can have: the order of the graph.
TEST(OrderByTimes, OfAChainIsTheOrderOfForward) {
  std::vector<ForwardNode> chain;
  for (std::size_t i = 0; i < 6; ++i) {
    ForwardNode node{.seconds = static_cast<double>(1 + i % 3), .reads = {{10 * i, 10 * i + 10}}};
    if (i > 0) node.after.push_back(i - 1);
    chain.push_back(node);
  }
  const auto order = exchanges::order_by_times(chain, [](Range r) { return static_cast<double>(1 + r.begin % 4); });
  for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i].begin, 10 * i);
}

TEST(OrderByTimes, IsKeptByAllAndLeavesTheModelAlone) {
  const std::string times = "name = 'enforced'\nby = 'times'\nbytes = 4096";
  EXPECT_EQ(figures_of(deep(times)).at("answers_out_of_order"), 0);
  EXPECT_TRUE(same_bits(simulate_system(2, deep(times))[0].model, simulate_system(2, deep("name = 'whole'"))[0].model));
}

// Seconds that a worker has waited within forward, for what it was about to read.
double waited_in_forward(const std::string& order) {
  double waited = 0;
  run_in_simulation(slow_links(), {.seed = 7}, [&](World& world) {
    run_system(world, deep(order, "planned = false"), [&](Replica& r) {
      if (world.rank() == 0) waited = r.trainer().waited_for_weights();
    });
  }).throw_if_failed();
  return waited;
}

TEST(OnDemand, TheNextForwardBeginsAndWaitsForAKeyWhenItReadsIt) {
  EXPECT_EQ(waited_in_forward("name = 'backward'\nbytes = 64"), 0);
  EXPECT_GT(waited_in_forward("name = 'on_demand'"), 0.01);
}

TEST(OnDemand, WorksWithPushesThatAreMergedOnEachHost) {
  SimCluster cluster = SimCluster::uniform(2, 1e-5, 1e9);
  for (auto& machine : cluster.machines) machine.ranks = 2;
  const std::string two_levels = "planned = false\ntwo_level = true";
  const auto pulls = simulate_system(4, deep("name = 'on_demand'", two_levels), cluster);
  EXPECT_TRUE(same_bits(pulls[3].model, simulate_system(4, deep("name = 'whole'", two_levels), cluster)[0].model));
}

TEST(MailboxOrder, WhatWaitsLeavesByItsKey) {
  std::vector<std::uint32_t> came;
  run_in_simulation(SimCluster::uniform(2, 1e-4, 1e6), {.seed = 1}, [&](World& world) {
    Mailbox mailbox(world, 1 << 20);
    if (world.rank() == 0) {
      mailbox.leave_by_key(1000);
      const std::vector<std::byte> payload(1000);
      for (const std::uint32_t key : {5u, 9u, 2u, 7u, 2u, 1u}) mailbox.post(1, {.key = key, .clock = key}, payload);
    } else {
      Message message;
      for (int i = 0; i < 6 && mailbox.take(0, message, 1e9); ++i) came.push_back(message.head.key);
    }
    mailbox.close();
  }).throw_if_failed();
  // The first may have gone before the others were posted.
  ASSERT_EQ(came.size(), 6u);
  EXPECT_TRUE(std::is_sorted(came.begin() + 1, came.end())) << came[0] << came[1] << came[2];
}

TEST(MailboxOrder, ClosingDoesNotWaitLongerThanItsTimeoutForWhatHasNotLeft) {
  const SimReport report = run_in_simulation(SimCluster::uniform(2, 1e-4, 1000), {.seed = 1}, [&](World& world) {
    Mailbox mailbox(world, 1 << 20);
    if (world.rank() == 0) {
      mailbox.leave_by_key(1000);
      for (std::uint32_t key = 0; key < 50; ++key) mailbox.post(1, {.key = key}, std::vector<std::byte>(1000));
    }
    mailbox.close(world.rank() == 0 ? 5 : 1000);  // a second for each message
  });
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.failures.front().rank, 0);
  EXPECT_TRUE(says(report.failures.front().text, "messages to rank 1 have not left within 5 s"));
  EXPECT_LT(report.failures.front().at, 10);
}

}  // namespace
}  // namespace echelon
