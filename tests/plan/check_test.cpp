#include "plan/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace echelon {
namespace {

PipelineSchedule sound(const char* name = "1f1b", int ranks = 3, int micro_batches = 4) {
  return find_schedule(name)->make({ranks, micro_batches});
}

std::string first_problem(const PipelineSchedule& s, const ScheduleLimits& limits = {}) {
  const auto problems = check_schedule(s, chain_messages(s.stages), limits).problems;
  return problems.empty() ? "" : problems.front();
}

// Each breaks a sound schedule in one way; none may get through.
struct Fault {
  const char* what;
  std::function<void(PipelineSchedule&)> plant;
  const char* said;  // part of the message
};

void swap_tasks(PipelineSchedule& s, std::size_t rank, std::size_t a, std::size_t b) {
  std::swap(s.ranks[rank][a], s.ranks[rank][b]);
}

const std::vector<Fault>& faults() {
  static const std::vector<Fault> all{
      {"a task is missing", [](auto& s) { s.ranks[1].pop_back(); }, "nobody does"},
      {"a forward pass is missing", [](auto& s) { s.ranks[0].erase(s.ranks[0].begin()); }, "nobody does forward"},
      {"a task is there twice", [](auto& s) { s.ranks[2].push_back(s.ranks[2].back()); }, "again on rank 2"},
      {"two ranks do the same", [](auto& s) { s.ranks[0].push_back(s.ranks[1].front()); }, "again on rank"},
      {"a rank has nothing to do", [](auto& s) { s.ranks[1].clear(); }, "nobody does"},
      {"a stage that does not exist", [](auto& s) { s.ranks[0][0].stage = 9; }, "does not exist"},
      {"a negative stage", [](auto& s) { s.ranks[0][0].stage = -1; }, "does not exist"},
      {"a micro-batch that does not exist", [](auto& s) { s.ranks[0][0].micro_batch = 4; }, "does not exist"},
      {"a pass that the schedule does not have", [](auto& s) { s.ranks[0].back().pass = Pass::weights; },
       "does not exist"},
      {"backward before forward", [](auto& s) { swap_tasks(s, 2, 0, 1); }, "before the pass that it needs"},
      {"backward away from its activations",
       [](auto& s) {
         s.ranks[0].push_back(s.ranks[1].back());
         s.ranks[1].pop_back();
       },
       "its activations are on rank"},
      {"two ranks have changed lists", [](auto& s) { std::swap(s.ranks[0].back(), s.ranks[1].back()); },
       "its activations are on rank"},
      {"backward passes out of order",
       [](auto& s) {
         auto& list = s.ranks[0];
         const auto at = [&](int m) { return std::ranges::find(list, StageTask{Pass::backward, 0, m}); };
         std::iter_swap(at(2), at(3));
       },
       "summed in order"},
      {"the first rank begins with the second micro-batch", [](auto& s) { swap_tasks(s, 0, 0, 1); }, "never gets past"},
      {"a middle rank begins with the second micro-batch", [](auto& s) { swap_tasks(s, 1, 0, 1); }, "never gets past"},
      {"a rank wants a gradient before it has sent what it is of",
       [](auto& s) {
         auto& list = s.ranks[0];  // all forward passes but one, its backward passes, then the last forward pass
         const auto last = std::ranges::find(list, StageTask{Pass::forward, 0, 1});
         std::rotate(last, last + 1, list.end() - 3);
       },
       ""},
      {"two ranks wait for each other",
       [](auto& s) {
         s.ranks[1] = {{Pass::forward, 1, 0}, {Pass::backward, 1, 0}, {Pass::forward, 1, 1}, {Pass::backward, 1, 1},
                       {Pass::forward, 1, 2}, {Pass::backward, 1, 2}, {Pass::forward, 1, 3}, {Pass::backward, 1, 3}};
         s.ranks[2] = {{Pass::forward, 2, 0}, {Pass::forward, 2, 1}, {Pass::backward, 2, 0}, {Pass::backward, 2, 1},
                       {Pass::forward, 2, 2}, {Pass::forward, 2, 3}, {Pass::backward, 2, 2}, {Pass::backward, 2, 3}};
       },
       "it waits for"},
      {"the last rank does all forward passes first while the one before keeps one alive",
       [](auto& s) {
         s.ranks[1] = {{Pass::forward, 1, 0}, {Pass::backward, 1, 0}, {Pass::forward, 1, 1}, {Pass::backward, 1, 1},
                       {Pass::forward, 1, 2}, {Pass::backward, 1, 2}, {Pass::forward, 1, 3}, {Pass::backward, 1, 3}};
         s.ranks[2] = find_schedule("gpipe")->make({3, 4}).ranks[2];
       },
       "it waits for"},
  };
  return all;
}

TEST(ScheduleChecker, FindsEveryPlantedFault) {
  EXPECT_EQ(first_problem(sound()), "");
  for (const Fault& fault : faults()) {
    PipelineSchedule s = sound();
    fault.plant(s);
    const std::string problem = first_problem(s);
    EXPECT_NE(problem, "") << fault.what;
    EXPECT_NE(problem.find(fault.said), std::string::npos) << fault.what << ": " << problem;
  }
}

TEST(ScheduleChecker, FindsASenderThatWaitsForEver) {
  // The second rank does the third micro-batch first, for which the first rank's buffers are not enough.
  PipelineSchedule s{.stages = 2, .micro_batches = 4, .ranks = {}};
  s.ranks = {find_schedule("gpipe")->make({2, 4}).ranks[0],
             {{Pass::forward, 1, 3},
              {Pass::forward, 1, 0},
              {Pass::forward, 1, 1},
              {Pass::forward, 1, 2},
              {Pass::backward, 1, 0},
              {Pass::backward, 1, 1},
              {Pass::backward, 1, 2},
              {Pass::backward, 1, 3}}};
  EXPECT_NE(first_problem(s).find("never gets past"), std::string::npos) << first_problem(s);
}

TEST(ScheduleChecker, FindsAnOverrunOfMemory) {
  const ScheduleLimits limits{.kept_bytes = {100, 100, 100}, .most_bytes = 300};
  EXPECT_EQ(first_problem(sound("1f1b"), limits), "");  // three alive on the first rank
  EXPECT_NE(first_problem(sound("gpipe"), limits).find("of activations at once"), std::string::npos);
  ScheduleLimits less = limits;
  less.most_bytes = 299;
  EXPECT_NE(first_problem(sound("1f1b"), less).find("rank 0"), std::string::npos);
}

TEST(ScheduleChecker, SaysWhoWaitsForWhat) {
  PipelineSchedule s = sound();
  swap_tasks(s, 1, 0, 1);
  const auto problems = check_schedule(s, chain_messages(3)).problems;
  ASSERT_EQ(problems.size(), 3u);  // everybody, in the end
  EXPECT_EQ(problems[1], "rank 1 never gets past forward of stage 1, micro-batch 1: stage 0 sends micro-batch 0 first");
}

TEST(Replay, CountsLatencyAndBytes) {
  const PipelineSchedule s = find_schedule("gpipe")->make({2, 1});
  const std::vector<StageMessage> messages{{0, 1, Pass::forward, 100}, {1, 0, Pass::backward, 100}};
  const Replay r = replay(s, messages, {.stages = {{1, 2}, {1, 2}}, .latency = 0.5, .bytes_per_second = 100});
  EXPECT_DOUBLE_EQ(r.seconds, 1 + 1.5 + 3 + 1.5 + 2);
  EXPECT_DOUBLE_EQ(r.busy(0), 3);
}

}  // namespace
}  // namespace echelon
