// Factors that go to servers: these make of them what whole gradients would have been, for fewer bytes; also when a
// server loses its state.

#include "parallel/server/factors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/parallel/results.h"

namespace echelon {
namespace {

using namespace test;
using exchanges::FactorMessage;

std::string factor_servers(const std::string& settings, const std::string& sync, const std::string& order = "backward",
                           const std::string& rule = "grad_push") {
  return fmt::format(
      "[rule]\nname = '{}'\n[exchange]\nname = 'server'\n{}\n[sync]\nname = '{}'\n[order]\nname = '{}'\n", rule,
      settings, sync, order);
}

// Layers of 16 x 24, 24 x 9 and 9 x 4: with 7 samples or so the first two are smaller as factors.
const Case network{"mlp",
                   table({{"hidden", integers({24, 9})}}),
                   {.kind = data::SyntheticOptions::Kind::blobs, .samples = 100, .shape = {16}, .classes = 4}};

TEST(ServerFactors, OfOneWorkerMakeTheSameBitsAsItsGradients) {
  for (const char* sync : {"async", "bsp", "delay"}) {
    SCOPED_TRACE(sync);
    SystemJob job{.system = factor_servers("", sync), .network = network, .steps = 20, .batch = 6};
    const auto whole = simulate_system(1, job);
    job.system = factor_servers("factors = true", sync);
    const auto factors = simulate_system(1, job);
    EXPECT_TRUE(same_bits(factors[0].model, whole[0].model));
    EXPECT_TRUE(same_bits(factors[0].weights, whole[0].weights));
  }
}

// Batches of 30 of 100 samples: workers have 7 or 8 of them, and the last batch of an epoch is smaller.
void expect_same_training(const Case& n, const std::string& settings, const std::string& sync,
                          const std::string& order = "backward", const std::string& rule = "grad_push") {
  SCOPED_TRACE(settings + " " + sync + " " + order + " " + rule);
  SystemJob job{.system = factor_servers(settings, sync, order, rule),
                .network = n,
                .lr = 0.02,
                .steps = 9,
                .batch = 30,
                .shards = 2};
  const auto whole = simulate_system(4, job);
  job.system = factor_servers(settings + "\nfactors = true", sync, order, rule);
  const auto factors = simulate_system(4, job);
  for (const SystemResult& r : factors) EXPECT_LT(largest_difference(r.model, whole[0].model), 2e-5);
  EXPECT_LT(bytes_of(factors), 0.95 * bytes_of(whole));
}

TEST(ServerFactors, InRoundsTrainAsWholeGradientsDo) {
  for (const char* count : {"servers = 1", "servers = 2\nplanned = false", "servers = 'all'"})
    expect_same_training(network, count, "bsp");
  expect_same_training(network, "servers = 'all'", "bsp", "fusion");
  expect_same_training(network, "servers = 2", "bsp", "backward", "grad_mean");
  expect_same_training(network, "servers = 2\nreplicas = 2", "bsp");
}

TEST(ServerFactors, OfLayersWithSeveralRowsASampleToo) {
  const Case gpt{"gpt",
                 table({{"width", integer(128)}, {"heads", integer(2)}, {"layers", integer(1)}}),
                 {.kind = data::SyntheticOptions::Kind::tokens, .samples = 100, .shape = {5}, .classes = 7}};
  expect_same_training(gpt, "servers = 2", "bsp");
}

TEST(ServerFactors, AsynchronouslyLearn) {
  SystemJob job{
      .system = factor_servers("servers = 'all'\nreplicas = 2\nfactors = true", "async"), .steps = 60, .batch = 16};
  EXPECT_GT(simulate_system(4, job)[0].accuracy, 0.9);
}

TEST(ServerFactors, AreNotLostWithAServer) {
  SystemJob job{
      .system = factor_servers("replicas = 2\nfactors = true", "bsp"), .network = network, .steps = 30, .batch = 12};
  const auto whole = simulate_system(2, job);  // a sum of two has no order
  job.system = factor_servers("replicas = 2\nfactors = true\nkill_server = '0@20'", "bsp");
  const auto killed = simulate_system(2, job);
  EXPECT_TRUE(same_bits(whole[0].model, killed[0].model));
  EXPECT_TRUE(same_bits(whole[1].weights, killed[1].weights));
  EXPECT_LT(killed[0].sent.bytes, whole[0].sent.bytes);  // afterwards the first has nothing to pass on
}

// The formula counts the worker that has most.
TEST(ServerFactors, OfUnequalPartsAreAtMostWhatTheFormulaSays) {
  const std::string system = factor_servers("servers = 'all'\nreplicas = 2\nfactors = true", "bsp");
  const auto few = simulate_system(4, {.system = system, .network = network, .steps = 3, .batch = 22});
  const auto more = simulate_system(4, {.system = system, .network = network, .steps = 4, .batch = 22});
  Problems problems;
  const auto expected = traffic_per_step(composition_of(system, problems), 4, few[0].pieces, few[0].buckets,
                                         CodecBytes::usual, few[0].factors);
  EXPECT_TRUE(expected.at_most);
  const double step = bytes_of(more) - bytes_of(few);
  EXPECT_LE(step, expected.bytes);
  EXPECT_GT(step, 0.9 * expected.bytes);
}

// A key of 3 + 10 x 6 + 2 + 4 x 5 numbers, with a layer before it that is not its own.
const std::vector<ThinProduct> products{
    {.name = "b", .range = {65, 85}, .out = 4, .in = 5, .rows = 2},
    {.name = "before", .range = {0, 0}, .out = 0, .in = 0},
    {.name = "a", .range = {103, 163}, .out = 10, .in = 6, .rows = 1},
    {.name = "c", .range = {165, 185}, .out = 4, .in = 5, .rows = 2},
};
constexpr Range key{100, 185};

TEST(FactorMessages, HaveEachLayerInWhicheverWayIsSmaller) {
  const FactorMessage message(key, products);
  for (std::size_t samples = 0; samples < 40; ++samples) {
    const std::size_t a = std::min<std::size_t>(60, samples * 16), c = std::min<std::size_t>(20, samples * 2 * 9);
    EXPECT_EQ(message.floats(samples), 3 + a + 2 + c + 1) << samples;
    EXPECT_LE(message.floats(samples), message.most_floats());
  }
}

TEST(FactorMessages, AreReadAsTheGradientThatTheyMean) {
  const FactorMessage message(key, products);
  for (const std::size_t samples : {0, 1, 2, 3, 4}) {
    std::vector<float> numbers(message.floats(samples));
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::sin(static_cast<float>(i));
    numbers.back() = static_cast<float>(samples);
    std::vector<float> out(key.count(), 99), expected;
    Buffer scratch;
    message.read(numbers, out, scratch);
    std::size_t at = 0;
    const auto plain = [&](std::size_t n) {
      for (std::size_t i = 0; i < n; ++i) expected.push_back(numbers[at++]);
    };
    const auto layer = [&](std::size_t o, std::size_t in, std::size_t rows) {
      if (rows * (o + in) >= o * in) return plain(o * in);
      for (std::size_t i = 0; i < o; ++i)
        for (std::size_t j = 0; j < in; ++j) {
          double sum = 0;
          for (std::size_t r = 0; r < rows; ++r) sum += numbers[at + r * o + i] * numbers[at + rows * o + r * in + j];
          expected.push_back(static_cast<float>(sum));
        }
      at += rows * (o + in);
    };
    plain(3), layer(10, 6, samples), plain(2), layer(4, 5, 2 * samples);
    EXPECT_LT(largest_difference(out, expected), 1e-6) << samples << " samples";
  }
}

TEST(FactorMessages, ThatMakeNoSenseAreRefused) {
  const FactorMessage message(key, products);
  std::vector<float> out(key.count());
  Buffer scratch;
  const auto read = [&](std::size_t floats, float samples) {
    std::vector<float> numbers(floats);
    if (floats > 0) numbers.back() = samples;
    message.read(numbers, out, scratch);
  };
  read(message.floats(2), 2);
  for (const float samples : {1.0f, 3.0f, -1.0f, 2.5f, 1e9f, std::numeric_limits<float>::quiet_NaN(), INFINITY})
    EXPECT_THROW(read(message.floats(2), samples), Failure) << samples;
  EXPECT_THROW(read(0, 0), Failure);
  EXPECT_THROW(read(message.floats(2) - 1, 2), Failure);
}

TEST(OwnersOfParameters, HaveWholeOnesAndAllOfThem) {
  const std::vector<std::size_t> offsets{0, 1000, 1016, 1500, 1516, 1600};
  for (int n : {1, 2, 3, 4, 9}) {
    const auto ranges = exchanges::owners_of_parameters(offsets, 1632, n);
    ASSERT_EQ(ranges.size(), static_cast<std::size_t>(n));
    EXPECT_EQ(ranges.front().begin, 0u);
    EXPECT_EQ(ranges.back().end, 1632u);
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      EXPECT_EQ(ranges[i].begin, i > 0 ? ranges[i - 1].end : 0);
      EXPECT_TRUE(ranges[i].end == 1632 || std::ranges::find(offsets, ranges[i].end) != offsets.end());
    }
  }
}

TEST(ServerFactors, SayWithWhatTheyDoNotGo) {
  const auto problems_of = [](const std::string& system) {
    Problems problems;
    check_composition(composition_of(system, problems), {.workers = 4}, problems);
    return problems.text("");
  };
  EXPECT_EQ(problems_of(factor_servers("factors = true\nreplicas = 2", "async")), "");
  const std::vector<std::pair<std::string, std::string>> refused{
      {factor_servers("factors = true\n[when]\nn_push = 2", "async"), "leave out when.n_push"},
      {factor_servers("factors = true\n[when]\nn_fetch = 2", "async"), "leave out when.n_fetch"},
      {factor_servers("factors = true\nfilters = ['skip']", "async"), "leave out filters"},
      {factor_servers("factors = true\nfanout = 2", "bsp"), "leave out fanout"},
      {factor_servers("factors = true", "ssp"), "take sync delay"},
      {factor_servers("factors = true", "essp"), "take sync delay"},
      {factor_servers("factors = true", "a_bsp"), "take sync quorum"},
      {factor_servers("factors = true", "bsp", "priority"), "take order backward"},
      {factor_servers("factors = true", "async", "backward", "param_mean"), "take rule grad_push"},
      {factor_servers("factors = true", "async") + "[codec]\nname = 'fp16'\n", "take codec none"},
      {"[rule]\nname = 'grad_push'\n[exchange]\nname = 'nested'\n[exchange.outer]\nfactors = true\n"
       "[sync]\nname = 'async'\nwork = 'own'\n",
       "outer.factors"},
  };
  for (const auto& [system, cure] : refused)
    EXPECT_NE(problems_of(system).find(cure), std::string::npos) << system << problems_of(system);
}

}  // namespace
}  // namespace echelon
