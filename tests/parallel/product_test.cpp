// Every rule with every exchange, sync and codec: each combination either trains or is refused with a reason and a cure
// before the first step. Nothing else may happen.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/parallel/systems.h"

namespace echelon {
namespace {

using namespace test;

std::vector<SystemResult> simulate(int workers, const SystemJob& job) { return simulate_system(workers, job); }

class Product : public testing::TestWithParam<std::string> {
 protected:
  int trained_ = 0, refused_ = 0;

  void expect_ten_steps_or_a_reason(const std::string& system) {
    SCOPED_TRACE(system);
    Problems problems;
    const Composition c = composition_of(system, problems);
    ASSERT_TRUE(problems.empty()) << problems.text("");
    check_composition(c, {.workers = 4}, problems);
    if (!problems.empty()) {
      ++refused_;
      for (const auto& p : problems.list())
        EXPECT_TRUE(p.text.find("take ") != std::string::npos || p.text.find("set ") != std::string::npos ||
                    p.text.find("leave out ") != std::string::npos || p.text.find("run it ") != std::string::npos)
            << p.text << " names no cure";
      return;
    }
    ++trained_;
    if (c.exchange->traits().coordinates) return;  // no replicas: tests/parallel/sandblaster_test.cpp
    try {
      const bool in_memory = c.exchange->traits().shared_memory;  // which a simulation does not have
      const auto ranks = (in_memory ? thread_system : simulate)(4, {.system = system, .steps = 10});
      EXPECT_EQ(ranks[0].reached, 10);
      if (c.sync->traits().leaves_out)  // some are left out
        EXPECT_LE(ranks[0].samples, 10 * 32);
      else
        EXPECT_EQ(ranks[0].samples, 10 * 32);
      EXPECT_TRUE(std::isfinite(ranks[0].loss));
      for (const SystemResult& r : ranks) EXPECT_TRUE(same_bits(r.model, ranks[0].model));
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
  }

  std::string system_of(const std::string& rule, const std::string& sync, const std::string& codec) {
    return fmt::format("[rule]\nname = '{}'\n[exchange]\nname = '{}'\n[sync]\nname = '{}'\n[codec]\nname = '{}'\n",
                       rule, GetParam(), sync, codec);
  }
};

TEST_P(Product, TrainsTenStepsOrIsRefusedWithAReason) {
  for (const std::string& rule : names_of(rule_parts()))
    for (const std::string& sync : names_of(sync_parts())) {
      for (const std::string& codec : codec_names()) expect_ten_steps_or_a_reason(system_of(rule, sync, codec));
      expect_ten_steps_or_a_reason(system_of(rule, sync, "auto"));
    }
  EXPECT_GT(trained_, 0) << "an exchange that nothing goes with";
  EXPECT_GT(refused_, 0);
  RecordProperty("trained", trained_);
  RecordProperty("refused", refused_);
}

TEST_P(Product, WithEveryOrderToo) {
  for (const std::string& rule : names_of(rule_parts()))
    for (const std::string& sync : names_of(sync_parts()))
      for (const std::string& order : names_of(order_parts()))
        for (const char* codec : {"none", "one_bit"})
          expect_ten_steps_or_a_reason(system_of(rule, sync, codec) +
                                       fmt::format("[order]\nname = '{}'\n{}", order,
                                                   order == "whole" ? "" : "bytes = 64\n"));  // several buckets
  EXPECT_GT(trained_, 0) << "an exchange that keeps to no order";
  EXPECT_GT(refused_, 0);
}

// Servers of several sites go with some syncs that have no other use.
class SitesProduct : public Product {};

TEST_P(SitesProduct, TrainsTenStepsOrIsRefusedWithAReason) {
  const std::string server = "[exchange]\nname = 'server'\nsites = 2\n";
  for (const std::string& rule : names_of(rule_parts()))
    for (const std::string& codec : codec_names())
      for (const char* order : {"", "[order]\nname = 'fusion'\nbytes = 64\n"})
        expect_ten_steps_or_a_reason(fmt::format("[rule]\nname = '{}'\n{}[sync]\nname = '{}'\n[codec]\nname = '{}'\n{}",
                                                 rule, server, GetParam(), codec, order));
  EXPECT_GT(refused_, 0);
  EXPECT_EQ(trained_ > 0, GetParam() == "approximate" || GetParam() == "async") << trained_;
}

INSTANTIATE_TEST_SUITE_P(Syncs, SitesProduct, testing::ValuesIn(names_of(sync_parts())),
                         [](const auto& info) { return info.param; });

INSTANTIATE_TEST_SUITE_P(Exchanges, Product, testing::ValuesIn(names_of(exchange_parts())),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace echelon
