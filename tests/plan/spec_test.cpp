#include "plan/legal.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace echelon {
namespace {

PlanSpec spec_of(const std::string& text, Problems& problems) {
  const Options table = plan_options(text, problems);
  OptionReader reader(table, problems);
  return read_plan(reader);
}

PlanSpec good(const std::string& text) {
  Problems problems;
  const PlanSpec plan = spec_of(text, problems);
  EXPECT_TRUE(problems.empty()) << problems.text("");
  return plan;
}

PlanFacts facts(int workers, int shards = 8, int layers = 10) {
  PlanFacts f{.workers = workers, .shards = shards};
  for (int i = 0; i < layers; ++i) f.layers.push_back("layer" + std::to_string(i));
  return f;
}

std::string refused(const std::string& text, const PlanFacts& f) {
  Problems problems;
  const PlanSpec plan = spec_of(text, problems);
  check_plan(plan, f, {}, problems);
  return problems.empty() ? "" : problems.text("");
}

TEST(PlanSpec, IsReadFromTheCommandLine) {
  EXPECT_EQ(good("data=2,pipeline=4,schedule=gpipe"), (PlanSpec{.data = 2, .pipeline = 4, .schedule = "gpipe"}));
  EXPECT_EQ(good("pipeline=2").schedule, "1f1b");
  EXPECT_EQ(good("pipeline=2,chunks=2").schedule, "interleaved");
  EXPECT_EQ(good("pipeline=2,neighbours=replicas"), (PlanSpec{.pipeline = 2, .neighbours = "replicas"}));
  EXPECT_EQ(to_string(good("pipeline=2,neighbours=replicas")), "pipeline=2,schedule=1f1b,neighbours=replicas");
}

TEST(PlanSpec, IsWrittenAsItIsRead) {
  for (const PlanSpec& plan : legal_plans(facts(8))) EXPECT_EQ(good(to_string(plan)), plan) << to_string(plan);
}

TEST(PlanSpec, EveryMistakeIsNamedWithTheNearestWord) {
  Problems problems;
  spec_of("dta=2,pipeline=two,schedule=1f1,nonsense,zero=1,zero=2", problems);
  const std::string text = problems.text("");
  for (const char* part :
       {"dta", "did you mean 'data'", "pipeline", "1f1b", "'nonsense' is not key=value", "zero is given twice"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
}

TEST(PlanSpec, WhatIsLeftOfTheWorkersIsDataParallel) {
  Problems problems;
  EXPECT_EQ(check_plan(good("pipeline=2"), facts(6), {}, problems).data, 3);
  EXPECT_TRUE(problems.empty());
}

TEST(PlanSpec, IllegalPlansAreRefusedWithTheNearestLegalOne) {
  EXPECT_NE(refused("pipeline=3", facts(4)).find("pipeline=3 does not divide 4 workers"), std::string::npos);
  EXPECT_NE(refused("pipeline=3", facts(4)).find("--plan data=1,pipeline=4,schedule=1f1b"), std::string::npos);
  EXPECT_NE(refused("data=2,pipeline=2", facts(8)).find("a plan for 4 workers, and there are 8"), std::string::npos);
  EXPECT_NE(refused("data=2,pipeline=2", facts(8)).find("--plan data=4,pipeline=2"), std::string::npos);
  EXPECT_NE(refused("pipeline=4", facts(4, 8, 3)).find("makes 4 stages, but the network has 3 layers"),
            std::string::npos);
  EXPECT_NE(
      refused("pipeline=2", facts(8, 2)).find("4 replicas of a split model needs a micro-batch, and a batch has 2"),
      std::string::npos);
  // What was asked for is kept where another degree makes room for it.
  EXPECT_NE(refused("recompute=sqrt", facts(4, 2)).find("--plan data=2,pipeline=2,schedule=1f1b,recompute=sqrt"),
            std::string::npos);
  EXPECT_NE(refused("pipeline=3,schedule=bidirectional", facts(3)).find("even number of stages"), std::string::npos);
  EXPECT_NE(refused("pipeline=2,chunks=2,schedule=1f1b", facts(2)).find("only interleaved"), std::string::npos);
  for (const char* rest : {"", ",tasks=free", ",zero=3", ",zero=1"})  // an order of stages, where there is one stage
    EXPECT_NE(refused(std::string("schedule=dualpipe") + rest, facts(2)).find("add pipeline=2"), std::string::npos);
  EXPECT_EQ(refused("schedule=1f1b,zero=3", facts(2)), "");
}

TEST(PlanSpec, SharedStateNeedsReplicasThatRunTheSameList) {
  EXPECT_EQ(
      good("zero=3,prefetch=4,recompute=sqrt,offload=/tmp,offloads=all,evaluate=first"),
      (PlanSpec{
          .zero = 3, .prefetch = 4, .recompute = "sqrt", .offload = "/tmp", .offloads = "all", .evaluate = "first"}));
  EXPECT_EQ(refused("zero=1", facts(4)), "");
  EXPECT_EQ(refused("zero=1,pipeline=2,schedule=bidirectional", facts(2)), "");
  EXPECT_NE(refused("zero=1,pipeline=4", facts(4)).find("shares the state of a stage among replicas, and there is one"),
            std::string::npos);
  EXPECT_NE(refused("zero=2", facts(3)).find("data=3 does not divide train.shards = 8"), std::string::npos);
  EXPECT_NE(refused("zero=3,pipeline=2,schedule=bidirectional", facts(4)).find("run the same list"), std::string::npos);
  EXPECT_NE(refused("recompute=block*", facts(1)).find("no layer has such a name (layer0 layer1"), std::string::npos);
  EXPECT_EQ(refused("recompute=layer1|layer2", facts(1)), "");
  EXPECT_NE(refused("evaluate=first", facts(2)).find("for a model that is split"), std::string::npos);
}

TEST(PlanSpec, AllReasonsAreSaidAtOnce) {
  PlanFacts f = facts(4, 8, 2);
  f.phases = 2;
  f.cores = 2;
  f.system = "easgd";
  const std::string text = refused("data=3,pipeline=3,zero=1", f);
  for (const char* part : {"3 stages", "for 9 workers", "2 phases", "easgd", "one core"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
}

// Replicas of a system may be split, if each rank has one stage of its own.
TEST(PlanSpec, ASystemHasReplicasOfOneStageARank) {
  PlanFacts f = facts(4);
  f.system = "easgd";
  for (const char* plan : {"pipeline=2", "tensor=2", "pipeline=2,schedule=zero_bubble", "recompute=all"}) {
    PlanFacts sliced = f;
    sliced.slices = 2;
    EXPECT_EQ(refused(plan, sliced), "") << plan;
  }
  EXPECT_NE(refused("zero=1", f).find("each has its own"), std::string::npos);
  EXPECT_NE(refused("pipeline=2,schedule=pipedream", f).find("and so does system easgd"), std::string::npos);
  EXPECT_NE(refused("pipeline=2,schedule=bidirectional", f).find("one stage under system"), std::string::npos);
  EXPECT_NE(refused("pipeline=2,chunks=2", f).find("one stage under system"), std::string::npos);
  EXPECT_NE(refused("pipeline=4", f).find("no other to exchange with"), std::string::npos);
}

TEST(PlanSpec, NothingIsSaidOfWorkersThatAreNotKnown) { EXPECT_EQ(refused("data=7,pipeline=3", facts(0)), ""); }

// The nearest plan is legal, whatever was asked for.
TEST(PlanSpec, TheNearestPlanWorks) {
  for (const int workers : {1, 2, 3, 4, 6, 8})
    for (int data = 0; data <= 9; ++data)
      for (int pipeline = 1; pipeline <= 9; ++pipeline)
        for (const std::string& schedule : pipeline_schedule_names()) {
          const PlanFacts f = facts(workers, 4, 5);
          PlanSpec nearest = nearest_plan({.data = data, .pipeline = pipeline, .schedule = schedule}, f);
          EXPECT_TRUE(refusals(nearest, f).empty()) << to_string(nearest);
        }
}

}  // namespace
}  // namespace echelon
