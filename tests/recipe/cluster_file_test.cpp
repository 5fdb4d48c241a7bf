#include "recipe/cluster_file.h"

#include <gtest/gtest.h>

#include "tests/support/says.h"
#include "tests/support/source_path.h"

namespace echelon {
namespace {

using test::complaint_of;
using test::says;

TEST(ClusterFile, TheExampleIsReadAsItSays) {
  const auto disk = make_real_disk();
  const ClusterFile file = read_cluster(*disk, source_path("recipes/clusters/two-racks.toml"));
  const SimCluster& c = file.cluster;
  ASSERT_EQ(c.machines.size(), 8u);
  EXPECT_EQ(c.ranks(), 16);
  EXPECT_EQ(c.machines[5].name, "b1");
  EXPECT_EQ(c.machines[7].name, "old");
  EXPECT_EQ(c.machines[7].attached_to, 1);
  EXPECT_DOUBLE_EQ(c.machines[0].bandwidth, 1.25e9);
  EXPECT_DOUBLE_EQ(c.machines[0].latency, 5e-6);
  EXPECT_DOUBLE_EQ(c.machines[7].flops, 25e9);
  EXPECT_DOUBLE_EQ(c.switches[0].uplink, 4 * 1.25e9 / 2);
  EXPECT_DOUBLE_EQ(c.switches[1].uplink, (3 * 1.25e9 + 0.125e9) / 2);
  EXPECT_EQ(c.machine_of_ranks(), (std::vector<int>{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7}));
  EXPECT_DOUBLE_EQ(file.faults.drop, 0.001);
  ASSERT_EQ(file.faults.slow.size(), 1u);
  EXPECT_EQ(file.faults.slow[0].rank, 7);
  ASSERT_EQ(file.faults.partitions.size(), 1u);
  EXPECT_DOUBLE_EQ(file.faults.partitions[0].end, 0.35);
}

TEST(ClusterFile, EveryFaultCanBeWritten) {
  const ClusterFile f = parse_cluster(R"(
[[machines]]
count = 3
name = "m"
[faults]
drop = 0.1
duplicate = 0.2
reorder = 0.3
delay = 0.4
corrupt = 0.5
stale = 0.6
delay_seconds = 7
begin = 1
end = 2
[[faults.crash]]
rank = 2
at = 1.5
power = true
[[faults.pause]]
rank = 1
at = 3
seconds = 4
[[faults.partition]]
one = 0
other = [1, 2]
one_way = true
[[faults.disk_full]]
machine = "m2"
begin = 5
)",
                                      "x.toml");
  EXPECT_EQ(to_text(f.faults),
            "drop = 0.1\nduplicate = 0.2\nreorder = 0.3\ndelay = 0.4\ncorrupt = 0.5\nstale = 0.6\n"
            "crash rank 2 at 1.5 s by loss of power\npause rank 1 at 3 s for 4 s\n"
            "partition [0] -> [1, 2] from 0 s to inf s\ndisk of machine 2 full from 5 s to inf s\n");
  EXPECT_DOUBLE_EQ(f.faults.delay_seconds, 7);
  EXPECT_DOUBLE_EQ(f.faults.begin, 1);
  EXPECT_DOUBLE_EQ(f.faults.end, 2);
}

TEST(ClusterFile, AllProblemsAtOnceWithLineAndCure) {
  const std::string said = complaint_of([] {
    parse_cluster(R"([[switches]]
name = "rack1"
uplink_gbit = 10
oversubscription = 2
[[switches]]
name = "rack1"
[[machines]]
name = "a"
count = 2
switch = "rack9"
gflop = 60
[[machines]]
name = "a0"
[faults]
drop = 2
[[faults.crash]]
rank = 9
[[faults.partition]]
one = [0, 1]
other = [1]
begin = 2
end = 1
[[faults.disk_full]]
machine = "z"
)",
                  "bad.toml");
  });
  for (const char* part : {
           "bad.toml:3: switches[0].uplink_gbit and oversubscription both say how fast it is; keep one",
           "bad.toml:6: switches[1].name = \"rack1\" is taken",
           "bad.toml:10: machines[0].switch = \"rack9\" is no switch of this file; there are: rack1",
           "bad.toml:11:",
           "gflops",
           "bad.toml:13: machines[1].name makes a second machine \"a0\"",
           "bad.toml:15: faults.drop",
           "bad.toml:17: faults.crash[0].rank",
           "faults.crash[0].at is missing: say when",
           "bad.toml:20: faults.partition[0].other names rank 1, which is in one as well",
           "bad.toml:22: faults.partition[0].end = 1 is not after begin = 2",
           "faults.disk_full[0].machine = \"z\" is no machine of this file",
       })
    EXPECT_TRUE(says(said, part));
}

TEST(ClusterFile, ATorusHasWiresInPlaceOfSwitches) {
  const SimCluster c =
      parse_cluster("[torus]\nshape = [2, 3]\nlink_gbit = 8\nlatency_us = 2\n[[machines]]\ncount = 6\n", "t.toml")
          .cluster;
  EXPECT_EQ(c.torus.shape, (std::vector<int>{2, 3}));
  EXPECT_DOUBLE_EQ(c.torus.bandwidth, 1e9);
  EXPECT_DOUBLE_EQ(c.torus.latency, 2e-6);
  const std::string said = complaint_of([] {
    parse_cluster(
        "[torus]\nshape = [4, 4]\n[[switches]]\nname = 'a'\n[[machines]]\ncount = 6\nbandwidth_gbit = 1\n"
        "[[machines]]\nname = 'b'\n",
        "t.toml");
  });
  for (const char* part : {"torus and [[switches]] both say how machines are connected; keep one",
                           "torus has 16 places, and there are 7 machines",
                           "machines[0].bandwidth_gbit is of a NIC; the machines of a torus have wires"})
    EXPECT_TRUE(says(said, part));
  EXPECT_TRUE(says(
      complaint_of([] { parse_cluster("[torus]\nshape = [100000, 100000]\n[[machines]]\ncount = 2\n", "t.toml"); }),
      "shape has more than 100000 machines"));
  EXPECT_EQ(read_cluster(*make_real_disk(), source_path("recipes/clusters/accelerator-torus.toml")).cluster.ranks(),
            256);
}

TEST(ClusterFile, NothingIsTooLittle) {
  EXPECT_TRUE(says(complaint_of([] { parse_cluster("", "empty.toml"); }), "machines is missing: write [[machines]]"));
  EXPECT_TRUE(says(complaint_of([] { read_cluster(*make_real_disk(), "/nowhere.toml"); }),
                   "/nowhere.toml: there is no such cluster file"));
  EXPECT_TRUE(says(complaint_of([] {
                     parse_cluster("[[machines]]\ncount = 90000\n[[machines]]\nname = 'b'\ncount = 90000\n", "x");
                   }),
                   "makes more than 100000 ranks"));
}

// docs/simulation.md names every key that can be written.
TEST(ClusterFile, IsDocumented) {
  const std::string text = read_text(*make_real_disk(), source_path("docs/simulation.md"));
  for (const char* key : {"name",
                          "uplink_gbit",
                          "[torus]",
                          "shape",
                          "link_gbit",
                          "oversubscription",
                          "latency_us",
                          "count",
                          "ranks",
                          "switch",
                          "gflops",
                          "bandwidth_gbit",
                          "memory_gbit",
                          "memory_latency_us",
                          "drop",
                          "duplicate",
                          "reorder",
                          "delay",
                          "corrupt",
                          "stale",
                          "reorder_seconds",
                          "delay_seconds",
                          "begin",
                          "end",
                          "crash",
                          "pause",
                          "slow",
                          "partition",
                          "disk_full"})
    EXPECT_NE(text.find("`" + std::string(key) + "`"), std::string::npos) << key;
}

}  // namespace
}  // namespace echelon
