#include "world/os/environment.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/says.h"

namespace echelon {
namespace {

using Variables = std::map<std::string, std::string>;

RankEnvironment read(const Variables& v) {
  return read_rank_environment([&](const std::string& name) {
    const auto found = v.find(name);
    return found == v.end() ? "" : found->second;
  });
}

std::string complaint(const Variables& v) {
  return test::complaint_of([&] { read(v); });
}

TEST(Environment, NobodyHasSaidAnything) {
  EXPECT_FALSE(read({}).known());
  EXPECT_FALSE(read({{"PATH", "/bin"}, {"MASTER_PORT", "29500"}}).known());
}

TEST(Environment, Torchrun) {
  const auto e = read({{"RANK", "5"},
                       {"WORLD_SIZE", "8"},
                       {"LOCAL_RANK", "1"},
                       {"LOCAL_WORLD_SIZE", "4"},
                       {"MASTER_ADDR", "10.0.0.1"},
                       {"MASTER_PORT", "29500"}});
  EXPECT_EQ(e, (RankEnvironment{"torchrun", 5, 8, 1, 4, "10.0.0.1", 29500}));
}

TEST(Environment, WhatWeSetIsWhatWeRead) {
  RankEnvironment e{"torchrun", 5, 8, 1, 4, "10.0.0.1", 29500};
  Variables v;
  for (const auto& [name, value] : torchrun_variables(e)) v[name] = value;
  EXPECT_EQ(read(v), e);
  e.master_address.clear();
  e.master_port = 0;
  v.clear();
  for (const auto& [name, value] : torchrun_variables(e)) v[name] = value;
  EXPECT_EQ(read(v), e);
}

TEST(Environment, MpiAndItsRelatives) {
  EXPECT_EQ(read({{"OMPI_COMM_WORLD_RANK", "2"},
                  {"OMPI_COMM_WORLD_SIZE", "4"},
                  {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                  {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}),
            (RankEnvironment{"Open MPI", 2, 4, 0, 2, "", 0}));
  EXPECT_EQ(read({{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}}), (RankEnvironment{"PMI", 3, 4, 0, 1, "", 0}));
}

TEST(Environment, Slurm) {
  const Variables v = {{"SLURM_PROCID", "3"},
                       {"SLURM_STEP_NUM_TASKS", "6"},
                       {"SLURM_LOCALID", "1"},
                       {"SLURM_STEP_TASKS_PER_NODE", "2(x3)"},
                       {"SLURM_STEP_NODELIST", "node[07-09]"}};
  EXPECT_EQ(read(v), (RankEnvironment{"Slurm", 3, 6, 1, 2, "node07", 0}));
  // In the batch script itself, before srun, there is one process and no step.
  EXPECT_FALSE(read({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "6"}, {"SLURM_JOB_NODELIST", "node[07-09]"}}).known());
}

TEST(Environment, FirstHostOfSlurmsLists) {
  EXPECT_EQ(first_slurm_host("a"), "a");
  EXPECT_EQ(first_slurm_host("a,b"), "a");
  EXPECT_EQ(first_slurm_host("node[03-05,9],b1"), "node03");
  EXPECT_EQ(first_slurm_host("node[3,9]-ib,b1"), "node3-ib");
  EXPECT_EQ(first_slurm_host("a,node[3-4]"), "a");
  EXPECT_EQ(first_slurm_host("node["), "");
  EXPECT_EQ(first_slurm_host(""), "");
}

TEST(Environment, NonsenseIsNamed) {
  EXPECT_TRUE(test::says(complaint({{"RANK", "x"}, {"WORLD_SIZE", "2"}}), "RANK=x"));
  EXPECT_TRUE(test::says(complaint({{"RANK", "2"}, {"WORLD_SIZE", "2"}}), "RANK=2 and WORLD_SIZE=2"));
  EXPECT_TRUE(
      test::says(complaint({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "70000"}}), "MASTER_PORT=70000"));
}

}  // namespace
}  // namespace echelon
