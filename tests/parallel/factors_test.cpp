// Gradients that travel as factors: the same sums as whole ones, fewer bytes, and chosen exactly where that is so.

#include <gtest/gtest.h>

#include <cmath>

#include "parallel/exchanges/factors.h"
#include "tests/parallel/results.h"

namespace echelon {
namespace {

using namespace test;

std::string factor_system(const std::string& rule, const std::string& exchange, const std::string& order = "backward") {
  return fmt::format("[rule]\nname = '{}'\n[exchange]\n{}\n[order]\nname = '{}'\n", rule, exchange, order);
}

Case mlp(std::initializer_list<std::int64_t> hidden, std::int64_t inputs = 16) {
  return {"mlp",
          table({{"hidden", integers(hidden)}}),
          {.kind = data::SyntheticOptions::Kind::blobs, .samples = 100, .shape = {inputs}, .classes = 4}};
}

// Batches of 30 of 100 samples: workers have 7 or 8 of them, and the last batch of an epoch is smaller.
void expect_same_as_whole(const Case& network, const std::string& whole, const std::string& as_factors) {
  SystemJob job{.system = whole, .network = network, .lr = 0.02, .steps = 9, .batch = 30, .shards = 2};
  const auto expected = simulate_system(4, job);
  job.system = as_factors;
  const auto ranks = simulate_system(4, job);
  for (const SystemResult& r : ranks) {
    EXPECT_TRUE(same_bits(r.weights, ranks[0].weights)) << "replicas have drifted apart";
    EXPECT_LT(largest_difference(r.model, expected[0].model), 2e-5);
  }
  EXPECT_NE(bytes_of(ranks), bytes_of(expected)) << "nothing went as factors";
}

TEST(Factors, SumToTheMeanGradient) {
  for (const char* order : {"backward", "whole", "fusion"})
    expect_same_as_whole(mlp({24, 9}), factor_system("grad_mean", "name = 'all_reduce'", order),
                         factor_system("grad_mean", "name = 'factors'", order));
}

TEST(Factors, OfLayersWithSeveralRowsASampleToo) {
  const Case gpt{"gpt",
                 table({{"width", integer(16)}, {"heads", integer(2)}, {"layers", integer(1)}}),
                 {.kind = data::SyntheticOptions::Kind::tokens, .samples = 100, .shape = {5}, .classes = 7}};
  expect_same_as_whole(gpt, factor_system("grad_mean", "name = 'all_reduce'"),
                       factor_system("grad_mean", "name = 'factors'"));
}

TEST(Factors, BetweenConvolutionsThatGoWhole) {
  const Case lenet{
      "lenet5", {}, {.kind = data::SyntheticOptions::Kind::images, .samples = 100, .shape = {1, 28, 28}, .classes = 4}};
  SystemJob job{.system = factor_system("grad_mean", "name = 'all_reduce'"),
                .network = lenet,
                .lr = 0.02,
                .steps = 2,
                .batch = 8};
  const auto expected = simulate_system(2, job);
  job.system = factor_system("grad_mean", "name = 'factors'");
  EXPECT_LT(largest_difference(simulate_system(2, job)[1].model, expected[0].model), 2e-5);
}

// What all workers together send for a layer, counted message by message.
double counted(const ThinProduct& p, std::size_t batch, int n, bool factors) {
  double numbers = 0;
  for (int from = 0; from < n; ++from)
    for (int at = 0; at < n; ++at) {
      if (at == from) continue;
      const double rows = static_cast<double>(batch) / n * static_cast<double>(p.rows);
      const auto whole = static_cast<double>(p.in * p.out);
      // Rows to everybody; or a part of the matrix there and a part of the sum back.
      numbers += factors ? rows * static_cast<double>(p.in + p.out) : 2 * whole / n;
    }
  return numbers;
}

TEST(HybridFactors, AreChosenExactlyWhenTheyAreSmaller) {
  int smaller = 0, larger = 0;
  for (int n : {2, 3, 4, 16})
    for (std::size_t in : {4, 16, 100, 1000})
      for (std::size_t out : {4, 10, 64, 500})
        for (std::size_t each : {1, 2, 8, 32}) {
          const ThinProduct p{.name = "w", .range = {0, in * out}, .out = out, .in = in, .rows = 2};
          const std::size_t batch = each * static_cast<std::size_t>(n);
          const double with = counted(p, batch, n, true), without = counted(p, batch, n, false);
          if (std::abs(with - without) < 1e-6 * with) continue;
          EXPECT_EQ(exchanges::factors_are_smaller_for_all(p, batch), with < without)
              << n << " workers, " << in << " x " << out << ", batch " << batch;
          (with < without ? smaller : larger)++;
        }
  EXPECT_GT(smaller, 20);
  EXPECT_GT(larger, 20);
}

// A wide layer and a narrow one: the hybrid sends less than either way for all layers.
TEST(HybridFactors, SendLessThanEitherWayAlone) {
  SystemJob job{.system = {}, .network = mlp({200, 3}, 40), .steps = 4, .batch = 16};
  auto bytes = [&](const std::string& exchange) {
    job.system = factor_system("grad_mean", exchange, "whole");
    return bytes_of(simulate_system(4, job));
  };
  const double hybrid = bytes("name = 'factors'\nhybrid = true");
  EXPECT_LT(hybrid, bytes("name = 'factors'"));
  EXPECT_LT(hybrid, bytes("name = 'all_reduce'"));
}

// What a worker remembers of the optimizer, besides its own weights.
std::size_t state_of(const std::string& exchange, int workers, const Case& network) {
  std::vector<std::size_t> bytes(static_cast<std::size_t>(workers));
  run_in_simulation(SimCluster::uniform(workers, 1e-5, 1e9), {}, [&](World& world) {
    run_system(world,
               {.system = factor_system("grad_push", exchange),
                .network = network,
                .rule = "momentum",
                .steps = 1,
                .batch = 4 * workers},
               [&](Replica& r) {
                 for (const auto& states : {r.trainer().state(), r.exchange().state()})
                   for (const StateSpan& s : states) bytes[static_cast<std::size_t>(world.rank())] += s.bytes.size();
               });
  }).throw_if_failed();
  return std::ranges::max(bytes);
}

TEST(HybridFactors, ServersTakeTheStepsForWhatGoesWholeAndAloneHaveTheState) {
  const Case network = mlp({64, 3}, 40);  // 40 x 64 goes as factors, 64 x 3 and 3 x 4 do not
  expect_same_as_whole(network, factor_system("grad_push", "name = 'all_reduce'"),
                       factor_system("grad_push", "name = 'factors'\nhybrid = true\nservers = true"));
  const Case narrow = mlp({8, 8}, 8);  // nothing goes as factors
  const std::size_t everywhere = state_of("name = 'factors'\nhybrid = true", 8, narrow);
  const std::size_t served = state_of("name = 'factors'\nhybrid = true\nservers = true", 8, narrow);
  EXPECT_LT(static_cast<double>(served), 0.4 * static_cast<double>(everywhere));
}

TEST(HybridFactors, ServersNeedARuleThatStepsThere) {
  Problems problems;
  const Composition c = composition_of(factor_system("grad_mean", "name = 'factors'\nservers = true"), problems);
  check_composition(c, {.workers = 4}, problems);
  EXPECT_NE(problems.text("").find("take rule grad_push"), std::string::npos);
}

TEST(ThinProducts, AreTheFullyConnectedLayers) {
  const auto data = data::make_synthetic(
      "train", {.kind = data::SyntheticOptions::Kind::images, .samples = 8, .shape = {1, 28, 28}, .classes = 4});
  const auto model = models::make_model("lenet5", inputs_of(*data), {});
  LocalTeam lone(1);
  LocalTrainer trainer(
      {.model = model.get(), .fields = data->fields(), .shards = 1, .seed = 3}, [] { return optim("sgd"); },
      *lone.world, lone.cores);
  std::size_t matrices = 0;
  for (const auto& e : trainer.table().entries()) matrices += e.parameter.shape.rank() == 2;
  const auto products = trainer.thin_products();
  EXPECT_EQ(products.size(), matrices);
  EXPECT_GT(products.size(), 0u);
  for (const ThinProduct& p : products) {
    EXPECT_EQ(p.range.count(), p.in * p.out);
    EXPECT_EQ(p.rows, 1u);
  }
}

}  // namespace
}  // namespace echelon
