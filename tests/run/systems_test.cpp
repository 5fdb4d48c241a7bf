// Every system that is shipped (recipes/systems), composed as its file says: with 64 workers in a simulation it trains,
// is deterministic, and sends what its page says.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/parallel/systems.h"
#include "tests/run/digits.h"
#include "tests/run/shipped.h"

namespace echelon {
namespace {

using namespace test;

constexpr int simulated_workers = 64;

class System : public testing::TestWithParam<std::string> {
 protected:
  // `own_work`: asynchronous workers have their own pieces, so that all do equally many.
  std::string tables(bool own_work = false) const {
    SystemFile file = file_;
    const auto name = file.sync.items.find("name");
    if (own_work && name != file.sync.items.end()) {
      const auto& kind = std::get<std::string>(name->second.value);
      if (kind == "async" || kind == "value" || kind == "approximate") file.sync.items["work"] = text("own");
    }
    return tables_of(file);
  }

  SystemJob job(int steps) const {
    SystemJob j{.system = tables(true), .steps = steps, .batch = 2 * simulated_workers};
    if (const auto optim = file_.local.items.find("optim"); optim != file_.local.items.end()) {
      const auto& table = *std::get<Option::Table>(optim->second.value);
      if (table.items.contains("name")) j.rule = std::get<std::string>(table.items.at("name").value);
    }
    return j;
  }

  Composition composition(Problems& problems) const { return composition_of(tables(), problems); }

  SystemFile file_ = read_system(*make_real_disk(), GetParam(), shipped);
};

TEST_P(System, ComposesWithoutProblems) {
  Problems problems;
  const Composition c = composition(problems);
  check_composition(c, {.workers = simulated_workers}, problems);
  EXPECT_TRUE(problems.empty()) << problems.text(file_.path);
}

// A round has costs of its own (it ends with a meeting), so the formula is of the difference between a longer and a
// shorter one.
TEST_P(System, With64SimulatedWorkersIsDeterministicAndSendsWhatItsPageSays) {
  Problems problems;
  const Composition c = composition(problems);
  problems.throw_if_any(file_.path);
  if (c.exchange->traits().shared_memory) GTEST_SKIP() << "its workers race by design, and send nothing";
  if (c.exchange->traits().coordinates) GTEST_SKIP() << "no replica: tests/parallel/sandblaster_test.cpp";
  const std::int64_t tau = c.when.at_end || c.when.tau > 64 ? 64 : c.when.tau;
  const auto steps = static_cast<int>(tau * std::max<std::int64_t>(1, 4 / tau));
  const auto shorter = simulate_system(simulated_workers, job(steps)),
             again = simulate_system(simulated_workers, job(steps));
  const auto longer = simulate_system(simulated_workers, job(2 * steps));

  EXPECT_EQ(longer[0].reached, 2 * steps);
  if (c.sync->traits().leaves_out)  // some are left out
    EXPECT_LE(longer[0].samples, 2 * steps * 2 * simulated_workers);
  else
    EXPECT_EQ(longer[0].samples, 2 * steps * 2 * simulated_workers);
  double messages = 0, bytes = 0;
  for (std::size_t r = 0; r < longer.size(); ++r) {
    EXPECT_TRUE(same_bits(shorter[r].model, shorter[0].model)) << "rank " << r << " has another model";
    EXPECT_TRUE(same_bits(shorter[r].weights, again[r].weights)) << "rank " << r << " is not deterministic";
    EXPECT_EQ(shorter[r].sent.bytes, again[r].sent.bytes);
    messages += static_cast<double>(longer[r].sent.messages - shorter[r].sent.messages);
    bytes += static_cast<double>(longer[r].sent.bytes - shorter[r].sent.bytes);
  }
  EXPECT_EQ(shorter[0].seconds, again[0].seconds);
  const auto expected =
      traffic_per_step(c, simulated_workers, longer[0].pieces, longer[0].buckets, CodecBytes::usual, longer[0].factors);
  const auto most =
      traffic_per_step(c, simulated_workers, longer[0].pieces, longer[0].buckets, CodecBytes::most, longer[0].factors);
  if (expected.at_most) {  // it depends on who is how fast
    EXPECT_LE(messages / steps, expected.messages);
    EXPECT_LE(bytes / steps, expected.bytes);
    return;
  }
  using Exactness = ExchangeKind::Exactness;
  const Exactness exactness = c.exchange->traffic_exactness();
  if (exactness == Exactness::mean || c.when.probability < 1) {  // five deviations of as many independent messages
    const double deviations = 5 * std::sqrt(2 * expected.messages / steps);
    EXPECT_NEAR(messages / steps, expected.messages, deviations);
    EXPECT_NEAR(bytes / steps, expected.bytes, deviations * expected.bytes / expected.messages * 8);
    return;
  }
  EXPECT_NEAR(messages / steps, expected.messages, 1e-9 * expected.messages);
  if (most.bytes == expected.bytes && exactness == Exactness::exact)
    EXPECT_NEAR(bytes / steps, expected.bytes, 1e-9 * expected.bytes);
  else  // what a codec leaves out depends on the numbers, and the size of a measured slice on the link
    EXPECT_LE(bytes / steps, most.bytes);
}

// Methods that are known to need more samples than the others, and how many points they may be behind after so few.
double allowance(const std::string& system) {
  if (system == "bnn" || system == "dorefa" || system == "ternary_weights") return 0.03;  // few bits for a weight
  if (system == "krum") return 0.05;               // one gradient of four: the noise of a quarter of the batch
  if (system == "parallel_sgd") return 0.02;       // averages once, and its momentum is shorter: smaller steps
  if (system == "negative_momentum") return 0.06;  // less momentum at the same learning rate: smaller steps
  if (system == "strads") return 0.03;             // of two layers one moves in a step: half as many updates of each
  return 0.015;
}

// What one worker gets with these hidden layers. Half a second, so it is measured wherever it is needed.
double accuracy_of_one(const std::string& hidden) {
  static std::map<std::string, double> known;
  if (!known.contains(hidden)) known[hidden] = accuracy_on_digits(shipped[0] + "/bsp.toml", 1, {.hidden = hidden});
  return known[hidden];
}

// As good as one worker with the same samples, less 1.5 points at most.
TEST_P(System, TrainsTheDigitsWithFourWorkersAsWellAsOne) {
  const char* hidden = file_.local.items.contains("model") ? "[64, 64]" : "[64]";  // quantised ones: not at the ends
  DigitsRun run{.hidden = hidden};
  if (GetParam() == "sandblaster") run.overrides = {"train.batch=6000", "train.epochs=40"};  // steps on all the data
  const double one = accuracy_of_one(hidden), four = accuracy_on_digits(file_.path, 4, run);
  EXPECT_GT(one, 0.92);
  EXPECT_GE(four, one - allowance(GetParam()));
  fmt::print("{}: {:.2f} % (one worker: {:.2f} %)\n", GetParam(), 100 * four, 100 * one);
}

TEST_P(System, IsInATableOfTheDocumentation) {
  EXPECT_TRUE(file_.section.size() == 1 && std::string("ABCDE").find(file_.section) != std::string::npos)
      << "section = \"" << file_.section << "\" is none of docs/systems.md";
}

INSTANTIATE_TEST_SUITE_P(Shipped, System, testing::ValuesIn(system_names(*make_real_disk(), shipped)),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace echelon
