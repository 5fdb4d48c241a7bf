#pragma once
// Every world on which the suite of tests/world/world_suite_test.cpp runs. A new world adds one line to the table.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "world/launch.h"

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
  };
  return worlds;
}

// For programs: some ranks are processes of their own, in which GoogleTest's macros are of no use.
inline void require(bool holds, const std::string& what) {
  if (!holds) throw Failure("the test requires: " + what);
}

}  // namespace echelon::test
