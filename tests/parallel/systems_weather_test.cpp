// Composed systems in a simulated cluster where things go wrong, by the seed: messages are lost, doubled, reordered and
// corrupted, ranks pause, slow down and crash, the network falls apart. A run comes to its end with one model on all
// ranks (where workers keep step: the clean run's), or it stops with a reason that names a rank. Nobody waits for ever.

#include <gtest/gtest.h>

#include "tests/parallel/results.h"
#include "tests/support/random_faults.h"

namespace echelon {
namespace {

using namespace test;

constexpr int system_ranks = 5, system_steps = 12;

struct Weathered {
  const char* name;
  std::string system;
  bool keeps_step = false;
  std::string rule = "momentum";
};

std::vector<Weathered> systems() {
  return {
      {"ssp", gradients_to_servers("servers = 'all'", "ssp") + "staleness = 3\n"},
      {"backup_workers", gradients_to_servers("servers = 'all'", "quorum") + "backups = 1\n"},
      {"parameter_server",
       gradients_to_servers("servers = 'all'\nreplicas = 3\nkill_server = '0@4, 1.1@5, 2.2@6'", "delay") +
           "staleness = 2\n"},
      {"easgd", "[rule]\nname = 'elastic'\n[exchange]\nname = 'server'\n[when]\ntau = 3\n[sync]\nname = 'async'\n"},
      {"gosgd",
       "[rule]\nname = 'gossip_sum'\n[exchange]\nname = 'random_peer'\n[when]\nprobability = 0.5\n[sync]\nname = "
       "'async'\n"},
      {"d_psgd", "[rule]\nname = 'neighbour_mean'\n[exchange]\nname = 'neighbour'\n", true},
      {"chain_in_rounds", gradients_to_servers("servers = 'all'\nreplicas = 3\nkill_server = '0.1@4, 1.2@5'", "bsp"),
       true},
      {"priority", gradients_to_servers("servers = 'all'", "bsp") + "[order]\nname = 'priority'\nbytes = 256\n", true},
      {"enforced_chain",
       gradients_to_servers("servers = 'all'\nreplicas = 3\nkill_server = '0.1@4, 1.2@5'", "bsp") +
           "[order]\nname = 'enforced'\nbytes = 256\n",
       true},
      {"dgc", "[exchange]\nname = 'all_reduce'\n[codec]\nname = 'dgc'\nshare = 0.1\nwarmup_epochs = 0\n", true, "sgd"}};
}

struct SystemOutcome {
  SimReport report;
  std::vector<SystemResult> results;
};

class SystemWeather : public testing::TestWithParam<Weathered> {
 protected:
  SystemOutcome run(std::uint64_t seed, const FaultPlan& faults) const {
    SystemOutcome o;
    o.results.resize(system_ranks);
    const SystemJob job{
        .system = GetParam().system, .rule = GetParam().rule, .steps = system_steps, .batch = 4 * system_ranks};
    o.report = run_in_simulation(
        SimCluster::uniform(system_ranks, 20e-6, 1.25e8, 1e8), {.seed = seed, .faults = faults},
        [&](World& world) { o.results[static_cast<std::size_t>(world.rank())] = run_system(world, job); });
    return o;
  }
};

// A wait that could never have ended, which only a simulation notices.
bool is_a_hang(const std::string& text) {
  return text.find("no rank can go on") != std::string::npos ||
         text.find("the simulation's limit") != std::string::npos ||
         text.find("would not stop waiting") != std::string::npos;
}

TEST_P(SystemWeather, EndsWellOrWithANamedRank) {
  const SystemOutcome clean = run(0, {});
  clean.report.throw_if_failed();
  constexpr std::uint64_t seeds = 24;
  std::uint64_t ended = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const FaultPlan plan = random_faults(seed, system_ranks, clean.report.seconds);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, to_text(plan)));
    const SystemOutcome o = run(seed, plan);
    for (const SimFailure& f : o.report.failures) {
      EXPECT_TRUE(f.crashed || f.text.find("rank ") != std::string::npos) << f.text;
      EXPECT_FALSE(is_a_hang(f.text)) << f.text;
    }
    if (!o.report.ok()) continue;
    ++ended;
    for (const SystemResult& r : o.results) {
      EXPECT_EQ(r.reached, system_steps);
      EXPECT_TRUE(same_bits(r.model, o.results[0].model));
      if (GetParam().keeps_step) {
        EXPECT_TRUE(same_bits(r.model, clean.results[0].model));
      }
    }
  }
  EXPECT_GT(ended, seeds / 4);
  EXPECT_LT(ended, seeds) << "the weather is too good";
}

INSTANTIATE_TEST_SUITE_P(Composed, SystemWeather, testing::ValuesIn(systems()),
                         [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace echelon
