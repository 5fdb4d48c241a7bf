// Thousands of seeded storms over the real membership code: at most one generation does steps at a time, steps go on
// once the faults are healed, a seed gives the same run again, and planted bugs are noticed.

#include "tests/member/membership_simulation.h"

#include <gtest/gtest.h>

namespace echelon::testing {

namespace {

void expect_no_problem(std::uint64_t first, std::uint64_t count) {
  std::int64_t faults = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const MembershipReport report = simulate_membership(seed);
    ASSERT_EQ(report.problem, "") << "seed " << seed << "\n" << report.log;
    ASSERT_GE(report.steps, 50) << "seed " << seed;
    faults += report.faults;
  }
  EXPECT_GT(faults, static_cast<std::int64_t>(4 * count)) << "there were storms";
}

TEST(MembershipSimulation, NoStormBreaksARule) { expect_no_problem(1, 60); }

TEST(SlowMembershipSimulation, NoneOfFiveThousandStormsBreaksARule) { expect_no_problem(1, 5000); }

TEST(MembershipSimulation, ASeedGivesTheSameRunAgain) {
  for (const std::uint64_t seed : {7u, 8u, 9u}) EXPECT_EQ(simulate_membership(seed).log, simulate_membership(seed).log);
}

struct Planted {
  const char* name;
  bool MemberBugs::*bug;
};

class MembershipBugs : public ::testing::TestWithParam<Planted> {};

TEST_P(MembershipBugs, AreNoticed) {
  MemberBugs bugs;
  bugs.*GetParam().bug = true;
  for (std::uint64_t seed = 1; seed <= 400; ++seed)
    if (const MembershipReport report = simulate_membership(seed, bugs); !report.problem.empty()) {
      RecordProperty("seed", std::to_string(seed));
      RecordProperty("problem", report.problem);
      return;
    }
  FAIL() << GetParam().name << " was not noticed";
}

INSTANTIATE_TEST_SUITE_P(
    All, MembershipBugs,
    ::testing::Values(
        Planted{"form_beside_running", &MemberBugs::form_beside_running},
        Planted{"form_too_few", &MemberBugs::form_too_few}, Planted{"form_too_many", &MemberBugs::form_too_many},
        Planted{"keep_generation", &MemberBugs::keep_generation}, Planted{"keep_session", &MemberBugs::keep_session},
        Planted{"oldest_state_first", &MemberBugs::oldest_state_first},
        Planted{"never_renew", &MemberBugs::never_renew}, Planted{"never_evict", &MemberBugs::never_evict},
        Planted{"evict_living", &MemberBugs::evict_living}, Planted{"never_suspect", &MemberBugs::never_suspect},
        Planted{"suspect_from_outside", &MemberBugs::suspect_from_outside},
        Planted{"no_last_call", &MemberBugs::no_last_call}, Planted{"no_fence", &MemberBugs::no_fence},
        Planted{"old_step", &MemberBugs::old_step}, Planted{"ready_while_running", &MemberBugs::ready_while_running},
        Planted{"ignore_newcomers", &MemberBugs::ignore_newcomers}, Planted{"ignore_end", &MemberBugs::ignore_end},
        Planted{"start_broken", &MemberBugs::start_broken}, Planted{"start_twice", &MemberBugs::start_twice},
        Planted{"first_call_only", &MemberBugs::first_call_only}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace

}  // namespace echelon::testing
