#pragma once
// Every world on which the suite of tests/world/world_suite_test.cpp runs. A new world adds one line to the table.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "world/launch.h"
#include "world/sim/simulation.h"

namespace echelon::test {

struct WorldUnderTest {
  std::string name;
  std::function<void(int ranks, const Program& program)> run;  // as in world/launch.h
  bool own_memory = false;  // ranks see nothing of each other's memory, and one can be killed
  bool real_time = true;    // its clock is the machine's
};

inline const std::vector<WorldUnderTest>& all_worlds() {
  static const std::vector<WorldUnderTest> worlds{
      {"threads", [](int ranks, const Program& program) { run_in_threads(ranks, {.seed = 7}, program); }},
      {"sim",
       [](int ranks, const Program& program) {
         run_in_simulation(SimCluster::uniform(ranks, 1e-5, 1e9), {.seed = 7}, program).throw_if_failed();
       },
       false, false},
      {"sim_in_bad_weather",  // the same through frames, of which many are lost, late, doubled or corrupt
       [](int ranks, const Program& program) {
         SimOptions options{.seed = 7};
         options.faults.drop = options.faults.duplicate = options.faults.corrupt = options.faults.stale = 0.05;
         options.faults.reorder = options.faults.delay = 0.1;
         run_in_simulation(SimCluster::uniform(ranks, 1e-5, 1e9), options, program).throw_if_failed();
       },
       false, false},
  };
  return worlds;
}

// For programs: some ranks are processes of their own, in which GoogleTest's macros are of no use.
inline void require(bool holds, const std::string& what) {
  if (!holds) throw Failure("the test requires: " + what);
}

}  // namespace echelon::test
