// What syncs answer to the questions of workers, servers and compositions; and that the server names none of them.

#include <gtest/gtest.h>

#include "parallel/sync.h"
#include "tests/parallel/systems.h"
#include "tests/support/says.h"
#include "tests/support/source_path.h"
#include "world/os/disk.h"

namespace echelon {
namespace {

using namespace test;

std::unique_ptr<const Sync> sync_of(const std::string& toml) {
  Problems problems;
  const Options tree = parse_toml(toml, "sync");
  OptionReader reader(tree, problems);
  auto sync = read_sync(reader);
  EXPECT_TRUE(problems.empty()) << problems.text("");
  return sync;
}

std::string problems_of(const std::string& system, const CompositionFacts& facts = {.workers = 4}) {
  Problems problems;
  const Composition c = composition_of(system, problems);
  check_composition(c, facts, problems);
  return problems.text("");
}

std::string pushes(const std::string& sync) {
  return "[rule]\nname = 'grad_push'\n[exchange]\nname = 'server'\n" + sync;
}

TEST(Syncs, SayHowOldParametersMayBe) {
  EXPECT_EQ(sync_of("name = 'bsp'")->must_have_seen(7), 7);
  for (const char* name : {"ssp", "essp", "delay"})
    EXPECT_EQ(sync_of(std::string("name = '") + name + "'\nstaleness = 2")->must_have_seen(7), 5) << name;
  for (const char* name : {"async", "value", "approximate", "quorum", "a_bsp", "soft"})
    EXPECT_EQ(sync_of(std::string("name = '") + name + "'")->must_have_seen(7), 0) << name;
}

TEST(Syncs, AskForAnswersWhenTheyNeedThem) {
  const auto ssp = sync_of("name = 'ssp'\nstaleness = 2");
  EXPECT_FALSE(ssp->asks({.clock = 4, .seen = 3}));
  EXPECT_TRUE(ssp->asks({.clock = 5, .seen = 3})) << "the next step must have seen four";
  EXPECT_FALSE(sync_of("name = 'essp'")->asks({.clock = 50})) << "parameters come by themselves";
  const auto async = sync_of("name = 'async'");
  EXPECT_TRUE(async->asks({.fetch_due = true}));
  EXPECT_FALSE(async->asks({.fetch_due = false}));
}

TEST(Syncs, CloseRoundsWithSoManyWorkers) {
  EXPECT_EQ(sync_of("name = 'bsp'")->needed(4), 4);
  EXPECT_EQ(sync_of("name = 'quorum'\nbackups = 3")->needed(4), 1);
  EXPECT_EQ(sync_of("name = 'quorum'\nbackups = 9")->needed(4), 1) << "nobody closes a round alone with nothing";
}

TEST(ValueGate, LetsOnlyTheSlowestGoOnWhenWeightsHaveMovedTooFar) {
  std::vector<float> weights{0, 0};
  const auto gate = sync_of("name = 'value'\nbound = 0.5")->make_gate(2, weights);
  const std::vector<Rank> both{0, 1};
  const std::vector<std::int64_t> steps{1, 2};
  weights[1] = 0.4f;
  EXPECT_TRUE(gate->may_answer(1, {both, steps}, weights));
  weights[1] = 0.6f;
  EXPECT_FALSE(gate->may_answer(1, {both, steps}, weights));
  EXPECT_TRUE(gate->may_answer(0, {both, steps}, weights)) << "the slowest never waits";
  gate->was_answered(0, weights);
  EXPECT_TRUE(gate->may_answer(1, {both, steps}, weights)) << "the slowest has read them as they are";
  weights[0] = -2;
  const std::vector<Rank> one{1};
  EXPECT_TRUE(gate->may_answer(1, {one, steps}, weights)) << "a worker that has left is not waited for";
  EXPECT_NEAR(gate->most_moved(), 0.4, 1e-6);
}

TEST(Syncs, RefuseWhatTheyCannotWorkWithAndNameACure) {
  const std::string soft = problems_of(pushes("[sync]\nname = 'soft'\n[codec]\nname = 'fp16'"));
  EXPECT_TRUE(says(soft, "rule mpca"));
  EXPECT_TRUE(says(soft, "take codec none instead of fp16"));
  EXPECT_TRUE(says(problems_of(pushes("[sync]\nname = 'quorum'\nbackups = 4")), "set sync.backups to at most 3"));
  EXPECT_TRUE(says(problems_of("[rule]\nname = 'elastic'\n[exchange]\nname = 'server'\n[sync]\nname = 'ssp'"),
                   "exchanges weights: take sync async"));
  EXPECT_TRUE(says(problems_of(pushes("fanout = 2\n[sync]\nname = 'delay'")), "take sync bsp or async"));
  EXPECT_TRUE(says(problems_of(pushes("[sync]\nname = 'async'"), {.workers = 4, .carries = true}), "sync.work=own"));
  EXPECT_TRUE(says(problems_of(pushes("[sync]\nname = 'async'"), {.workers = 4, .fixed_data = true}), "sync.work=own"));
}

TEST(Syncs, ApproximateIsBetweenSitesWhichAreTheExchanges) {
  EXPECT_TRUE(says(problems_of(pushes("[sync]\nname = 'approximate'")), "set exchange.sites"));
  EXPECT_EQ(problems_of(pushes("sites = 2\n[sync]\nname = 'approximate'")), "");
  EXPECT_EQ(problems_of(pushes("sites = 2\n[sync]\nname = 'async'")), "") << "sites that never wait for each other";
  EXPECT_TRUE(says(problems_of(pushes("sites = 2\n[sync]\nname = 'ssp'")), "take sync approximate or async"));
  const std::string moved = problems_of(pushes("sites = 2\n[sync]\nname = 'approximate'\nsites = 2\nthreshold = 0.1"));
  EXPECT_TRUE(says(moved, "exchange.sites"));
  EXPECT_TRUE(says(moved, "exchange.site_threshold"));
  EXPECT_TRUE(says(problems_of(pushes("sites = 2\nreplicas = 2\n[sync]\nname = 'async'")), "leave out fanout"));
}

TEST(Sites, TrainWithoutAClockBetweenThemToo) {
  const auto ranks = simulate_system(4, {.system = pushes("sites = 2\n[sync]\nname = 'async'"), .steps = 60});
  EXPECT_GT(ranks[0].accuracy, 0.9);
}

std::string source_file(const std::string& path) { return read_text(*make_real_disk(), source_path(path)); }

// A new sync never edits the server: nothing there names one.
TEST(Syncs, TheServerNamesNoSync) {
  for (const char* file : {"client.cpp", "inbox.cpp", "pusher.cpp", "shard.cpp", "round_merger.cpp",
                           "arrival_merger.cpp", "overlap.cpp", "relay.cpp", "chain_worker.cpp", "chain_member.cpp"}) {
    const std::string text = source_file(std::string("src/parallel/server/") + file);
    EXPECT_EQ(text.find("syncs/"), std::string::npos) << file;
    EXPECT_EQ(text.find("sync_name"), std::string::npos) << file;
  }
}

}  // namespace
}  // namespace echelon
