// The machine's NUMA nodes, as the system describes them.

#include "world/os/numa.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/support/temp_dir.h"
#include "world/os/cores.h"

namespace echelon {
namespace {

using namespace test;

TEST(Numa, ReadsListsOfCores) {
  EXPECT_EQ(parse_core_list("0-3,8"), (std::vector<int>{0, 1, 2, 3, 8}));
  EXPECT_EQ(parse_core_list("5"), (std::vector<int>{5}));
  EXPECT_EQ(parse_core_list(""), (std::vector<int>{}));
  EXPECT_EQ(parse_core_list("x,2,-1"), (std::vector<int>{2}));
}

TEST(Numa, EveryUsableCoreIsOnOneNode) {
  std::size_t cores = 0;
  for (const auto& node : numa_nodes()) cores += node.size();
  EXPECT_EQ(cores, static_cast<std::size_t>(available_cores()));
}

TEST(Numa, ANodeHasTheCoresThatTheSystemNamesAndThisProcessMayUse) {
  const TempDir dir;
  const int core = numa_nodes().front().front();
  std::ofstream(dir.path("online")) << "0-1\n";
  for (const int node : {0, 1}) {
    std::filesystem::create_directory(dir.path("node" + std::to_string(node)));
    std::ofstream(dir.path("node" + std::to_string(node) + "/cpulist")) << (node == 1 ? core : 100000) << "\n";
  }
  EXPECT_EQ(numa_nodes(dir.path("")), (std::vector<std::vector<int>>{{core}}));
  EXPECT_EQ(numa_nodes(dir.path("nothing")).size(), 1u);
}

TEST(Numa, AThreadThatIsBoundRunsOnItsCoresOnly) {
  const int core = numa_nodes().front().front();
  std::thread([core] {
    bind_this_thread(std::vector<int>{core});
    EXPECT_EQ(available_cores(), 1);
  }).join();
}

}  // namespace
}  // namespace echelon
