// Every rule with every exchange, sync and codec: each combination either trains or is refused with a reason and a cure
// before the first step. Nothing else may happen.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/parallel/systems.h"

namespace echelon {
namespace {

using namespace test;

std::vector<SystemResult> simulate(int workers, const SystemJob& job) { return simulate_system(workers, job); }

class Product : public testing::TestWithParam<std::string> {};

TEST_P(Product, TrainsTenStepsOrIsRefusedWithAReason) {
  int trained = 0, refused = 0;
  for (const std::string& rule : merge_rule_names())
    for (const std::string& sync : sync_names())
      for (const std::string& codec : codec_names()) {
        const std::string system =
            fmt::format("[rule]\nname = '{}'\n[exchange]\nname = '{}'\n[sync]\nname = '{}'\n[codec]\nname = '{}'\n",
                        rule, GetParam(), sync, codec);
        Problems problems;
        const Composition c = composition_of(system, problems);
        ASSERT_TRUE(problems.empty()) << system << problems.text("");
        check_composition(c, {.workers = 4}, problems);
        if (!problems.empty()) {
          ++refused;
          for (const auto& p : problems.list())
            EXPECT_TRUE(p.text.find("take ") != std::string::npos || p.text.find("set ") != std::string::npos ||
                        p.text.find("leave out ") != std::string::npos || p.text.find("run it ") != std::string::npos)
                << p.text << " names no cure";
          continue;
        }
        ++trained;
        SCOPED_TRACE(system);
        try {
          const bool in_memory = c.exchange->traits().shared_memory;  // which a simulation does not have
          const auto ranks = (in_memory ? thread_system : simulate)(4, {.system = system, .steps = 10});
          EXPECT_EQ(ranks[0].reached, 10);
          if (c.sync.kind == Sync::Kind::quorum || c.sync.kind == Sync::Kind::a_bsp)  // some are left out
            EXPECT_LE(ranks[0].samples, 10 * 32);
          else
            EXPECT_EQ(ranks[0].samples, 10 * 32);
          EXPECT_TRUE(std::isfinite(ranks[0].loss));
          for (const SystemResult& r : ranks) EXPECT_TRUE(same_bits(r.model, ranks[0].model));
        } catch (const std::exception& e) {
          ADD_FAILURE() << e.what();
        }
      }
  EXPECT_GT(trained, 0) << "an exchange that nothing goes with";
  EXPECT_GT(refused, 0);
  RecordProperty("trained", trained);
  RecordProperty("refused", refused);
}

INSTANTIATE_TEST_SUITE_P(Exchanges, Product, testing::ValuesIn(exchange_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace echelon
