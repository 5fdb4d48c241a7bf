// Parameter servers: what is sent when, and that it makes no difference where it should make none.

#include <gtest/gtest.h>

#include <set>

#include "parallel/server/keys.h"
#include "tests/parallel/systems.h"

namespace echelon {
namespace {

using namespace test;

std::string exchange_servers(const std::string& exchange, const std::string& sync) {
  return "[rule]\nname = 'grad_push'\n[exchange]\nname = 'server'\n" + exchange + "\n[sync]\nname = " + sync + "\n";
}

double bytes(const std::vector<SystemResult>& ranks) {
  double sum = 0;
  for (const SystemResult& r : ranks) sum += static_cast<double>(r.sent.bytes);
  return sum;
}
double messages(const std::vector<SystemResult>& ranks) {
  double sum = 0;
  for (const SystemResult& r : ranks) sum += static_cast<double>(r.sent.messages);
  return sum;
}

void expect_near(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5);
}

TEST(Servers, TheModelIsTheSameOnAnyNumberOfThem) {  // but for the order in which contributions come and are added
  const auto one = simulate_system(4, {.system = exchange_servers("servers = 1", "'bsp'")});
  for (const std::string count : {"2", "3", "'all'"})
    expect_near(one[0].model, simulate_system(4, {.system = exchange_servers("servers = " + count, "'bsp'")})[0].model);
}

TEST(Servers, PlannedAccessSendsOneMessageForAllTensorsOfAServer) {
  const auto planned = simulate_system(4, {.system = exchange_servers("servers = 2\nplanned = true", "'bsp'")});
  const auto each = simulate_system(4, {.system = exchange_servers("servers = 2\nplanned = false", "'bsp'")});
  EXPECT_TRUE(same_bits(planned[0].model, each[0].model));
  EXPECT_LT(messages(planned), 0.7 * messages(each));
}

TEST(Servers, MergedPushesSaveTrafficByTheirNumber) {
  const auto sent = [](const std::string& exchange, int steps) {
    return bytes(simulate_system(4, {.system = exchange_servers(exchange, "'async'\nwork = 'own'"), .steps = steps}));
  };
  const auto step = [&](const std::string& exchange) { return (sent(exchange, 48) - sent(exchange, 24)) / 24; };
  // Without the messages about work, which are the same.
  const double push = step("[when]\nn_push = 1\nn_fetch = 12") - step("[when]\nn_push = 12\nn_fetch = 12");
  const double fetch = step("[when]\nn_push = 12\nn_fetch = 1") - step("[when]\nn_push = 12\nn_fetch = 12");
  const double model = 4.0 * (16 * 12 + 12 + 12 * 4 + 4);
  EXPECT_GT(push, 3 * model * 11 / 12) << "three workers are on another rank";
  EXPECT_LT(push, 3 * (model + 600) * 11 / 12);
  EXPECT_GT(fetch, 3 * model * 11 / 12);
}

// Plain SGD adds gradients up: whether every step is pushed or their sum makes no difference if the worker's own copy
// is what it computes from.
TEST(Servers, AMergedPushMovesTheModelAsItsStepsWould) {
  const auto run = [](const std::string& exchange, int steps) {
    return simulate_system(
               2, {.system = exchange_servers(exchange, "'async'\nwork = 'own'"), .rule = "sgd", .steps = steps})[0]
        .model;
  };
  const auto each = run("[when]\nn_push = 1\nn_fetch = 8", 8), merged = run("[when]\nn_push = 4\nn_fetch = 8", 8);
  expect_near(each, merged);
  const auto start = run("[when]\nn_push = 1\nn_fetch = 8", 1);
  double moved = 0;
  for (std::size_t i = 0; i < each.size(); ++i) moved = std::max(moved, std::abs(double(each[i]) - start[i]));
  EXPECT_GT(moved, 1e-2);
  // What is left over at the end of a round is not lost.
  const auto rest = run("[when]\nn_push = 5\nn_fetch = 8", 8);
  expect_near(each, rest);
}

// One worker, whose copy its cores move within each batch; what they have moved is put right by the server's answer.
TEST(RacingReplica, LaterPartsOfABatchSeeWhatEarlierOnesHaveMoved) {
  SystemJob job{
      .system = exchange_servers("", "'async'\nwork = 'own'"), .rule = "sgd", .lr = 0.2, .steps = 1, .shards = 4};
  const auto whole = simulate_system(1, job)[0];
  job.system = exchange_servers("racing = true", "'async'\nwork = 'own'");
  const auto raced = simulate_system(1, job)[0];
  double differ = 0;
  for (std::size_t i = 0; i < whole.model.size(); ++i)
    differ = std::max<double>(differ, std::abs(whole.model[i] - raced.model[i]));
  EXPECT_GT(differ, 1e-5);
  EXPECT_LT(differ, 0.1);
  EXPECT_TRUE(same_bits(raced.weights, raced.model)) << "the copy is not what the server has";
  job.steps = 80, job.shards = 2, job.cores = 2, job.lr = 0.1;
  EXPECT_GT(thread_system(2, job)[0].accuracy, 0.95);
}

TEST(RacingReplica, IsRefusedWhereTheCopyIsNotPutRight) {
  Problems problems;
  const Composition c = composition_of(exchange_servers("racing = true", "'ssp'"), problems);
  check_composition(c, {.workers = 4}, problems);
  EXPECT_NE(problems.text("").find("leave out exchange.racing"), std::string::npos);
}

TEST(ServerRing, AFurtherServerTakesItsSegmentsAndTheOthersKeepTheirs) {
  int moved = 0;
  std::vector<int> has(6);
  const auto five = exchanges::ring_servers(5, 16, 600), six = exchanges::ring_servers(6, 16, 600);
  for (std::size_t i = 0; i < five.size(); ++i) {
    ++has[static_cast<std::size_t>(six[i])];
    if (five[i] == six[i]) continue;
    ++moved;
    EXPECT_EQ(six[i], 5);
  }
  EXPECT_GT(moved, 30);
  EXPECT_LT(moved, 240);
  for (const int segments : has) EXPECT_GT(segments, 0);
}

TEST(ServerRing, TheModelIsTheSame) {
  const auto ranges = simulate_system(4, {.system = exchange_servers("servers = 'all'", "'bsp'")});
  const auto ring = simulate_system(4, {.system = exchange_servers("servers = 'all'\nring = 4", "'bsp'")});
  expect_near(ring[0].model, ranges[0].model);
  const auto replicated =
      simulate_system(4, {.system = exchange_servers("servers = 'all'\nring = 4\nreplicas = 2", "'bsp'")});
  EXPECT_TRUE(same_bits(replicated[0].model, ring[0].model));
  EXPECT_NE(messages(ring), messages(ranges));
}

// How many pushes this worker had made when it read each key last.
std::vector<std::int64_t> pushes_at_reading(const std::string& exchange) {
  std::vector<std::int64_t> own;
  run_in_simulation(SimCluster::uniform(2, 1e-5, 1e9), {}, [&](World& world) {
    run_system(world, {.system = exchange_servers(exchange, "'async'\nwork = 'own'"), .steps = 16}, [&](Replica& r) {
      for (const StateSpan& s : r.exchange().state())
        if (world.rank() == 0 && s.name == "own in") {
          own.resize(s.bytes.size() / sizeof(std::int64_t));
          std::memcpy(own.data(), s.bytes.data(), s.bytes.size());
        }
    });
  }).throw_if_failed();
  return own;
}

TEST(ServerCache, EveryKeyHasItsTurn) {
  const auto together = pushes_at_reading("planned = false\n[when]\nn_push = 4\nn_fetch = 4");
  EXPECT_EQ(std::set(together.begin(), together.end()).size(), 1u);
  const auto apart = pushes_at_reading("planned = false\ncache = true\n[when]\nn_push = 4");
  std::set<std::int64_t> times(apart.begin(), apart.end());
  times.erase(0);  // gaps between tensors have no change, and no push
  EXPECT_GE(times.size(), 3u);
}

TEST(ServerCache, AKeyThatNothingHasChangedStaysWhereItIs) {
  const auto sent = [](double lr) {
    return bytes(simulate_system(
        4, {.system = exchange_servers("planned = false\ncache = true\n[when]\nn_push = 4", "'async'\nwork = 'own'"),
            .lr = lr,
            .steps = 32}));
  };
  EXPECT_LT(sent(0), 0.7 * sent(0.01));  // what is left is about work
}

TEST(ServerCache, MovesTheModelAsItsStepsWould) {
  const auto run = [](const std::string& exchange) {
    return simulate_system(
               1, {.system = exchange_servers(exchange, "'async'\nwork = 'own'"), .rule = "sgd", .steps = 8})[0]
        .model;
  };
  expect_near(run("planned = false\ncache = true\n[when]\nn_push = 4"), run(""));
}

TEST(Servers, AWarmStartIsOneWorkersAlone) {
  const SimCluster slow = SimCluster::uniform(4, 1e-5, 1e9, 1e6);
  const auto cold = simulate_system(4, {.system = exchange_servers("", "'async'"), .steps = 12}, slow);
  const auto warm =
      simulate_system(4, {.system = exchange_servers("[when]\nwarm_start = 24", "'async'"), .steps = 12}, slow);
  EXPECT_EQ(warm[0].samples, cold[0].samples);
  EXPECT_NEAR(warm[0].figures.at("updates"), 48, 1e-9);
  EXPECT_LT(warm[0].figures.at("mean_staleness"), 0.7 * cold[0].figures.at("mean_staleness"));
  EXPECT_GT(warm[0].seconds, 1.5 * cold[0].seconds) << "half of the work by one of four";
  const auto longer =
      simulate_system(4, {.system = exchange_servers("[when]\nwarm_start = 1000", "'async'"), .steps = 12}, slow);
  EXPECT_EQ(longer[0].samples, cold[0].samples) << "a warm start longer than the training ends with it";
}

TEST(Servers, NoMoreOfThemOrOfSitesThanWorkers) {
  const auto problems_of = [](const std::string& system, int workers) {
    Problems problems;
    const Composition c = composition_of(system, problems);
    check_composition(c, {.workers = workers}, problems);
    return problems.text("");
  };
  const std::string nested =
      "[rule]\nname = 'grad_push'\n[exchange]\nname = 'nested'\n[exchange.outer]\nname = 'server'\nservers = 5\n"
      "[sync]\nname = 'async'\nwork = 'own'";
  for (const std::string& system :
       {exchange_servers("servers = 5", "'async'"), exchange_servers("sites = 5", "'approximate'"), nested}) {
    EXPECT_NE(problems_of(system, 4).find("at most 4"), std::string::npos) << system << problems_of(system, 4);
    EXPECT_EQ(problems_of(system, 5), "") << system;
  }
  EXPECT_EQ(problems_of(exchange_servers("servers = 5", "'async'"), 1), "") << "alone, nobody serves anybody";
  EXPECT_NE(problems_of(exchange_servers("servers = 'some'", "'async'"), 4).find("a whole number"), std::string::npos);
}

TEST(Servers, CodecsThatAreUnknownAreAnsweredWithAllThereAre) {
  const auto problems_of = [](const std::string& codec) {
    Problems problems;
    composition_of("[codec]\n" + codec, problems);
    return problems.text("");
  };
  for (const std::string& part :
       {std::string("codec.name must be one of"), std::string("auto"), std::string("'top_k'")})
    EXPECT_NE(problems_of("name = 'top-k'").find(part), std::string::npos) << problems_of("name = 'top-k'");
  const std::string bad = problems_of("name = 'auto'\ncandidates = ['fp17']");
  EXPECT_NE(bad.find("codec.candidates has no 'fp17'; did you mean 'fp16'?"), std::string::npos) << bad;
  EXPECT_EQ(bad.find("codec.name"), std::string::npos) << bad;
}

TEST(Servers, GradientsThatWouldBeLostAreRefused) {
  for (const auto& [system, cure] : std::vector<std::pair<std::string, std::string>>{
           {exchange_servers("[when]\ntau = 2", "'async'"), "n_push"},
           {exchange_servers("[when]\nprobability = 0.5", "'async'"), "n_push"},
           {exchange_servers("[when]\nn_push = 2", "'ssp'"), "sync async"},
           {exchange_servers("[when]\nwarm_start = 5", "'bsp'"), "sync async"},
           {"[rule]\nname = 'grad_mean'\n[exchange]\nname = 'server'\n[sync]\nname = 'quorum'", "grad_push"}}) {
    Problems problems;
    const Composition c = composition_of(system, problems);
    check_composition(c, {.workers = 4}, problems);
    EXPECT_NE(problems.text("").find(cure), std::string::npos) << system << problems.text("");
  }
}

}  // namespace
}  // namespace echelon
