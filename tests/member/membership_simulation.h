#pragma once
// Nodes of a job on virtual time: the real agents (member/agent.h) on a real store in memory, with faults between them,
// around ranks that do nothing but count steps. A seed decides everything; what goes against the rules is reported.

#include <cstdint>
#include <string>

#include "member/planted_bugs.h"

namespace echelon::testing {

struct MembershipReport {
  std::string problem;  // the first rule that was broken; empty: none
  std::string log;      // everything that happened, a line each
  std::int64_t steps = 0, generations = 0, faults = 0;
};

MembershipReport simulate_membership(std::uint64_t seed, const MemberBugs& bugs = {}, int nodes = 8, int steps = 50);

}  // namespace echelon::testing
