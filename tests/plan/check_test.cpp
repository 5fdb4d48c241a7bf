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

// Lists that are wrong by themselves: each breaks a sound schedule in one way; none may get through.
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

// Deadlocks and overruns of memory: every task is there once, on the right rank, and each rank's own order makes sense;
// only together they cannot be run. Each must be refused, with the reason.
struct Planted {
  const char* what;
  const char* schedule;
  ScheduleShape shape;
  std::function<void(PipelineSchedule&)> plant;
  const char* said;
  std::vector<StageMessage> more = {};  // besides those between neighbours
  ScheduleLimits limits = {};
};

// Moves a task to before another one of the same rank.
void move_before(PipelineSchedule& s, int rank, StageTask task, StageTask other) {
  auto& list = s.ranks[static_cast<std::size_t>(rank)];
  list.erase(std::ranges::find(list, task));
  list.insert(std::ranges::find(list, other), task);
}
void move_to_end(PipelineSchedule& s, int rank, StageTask task) {
  auto& list = s.ranks[static_cast<std::size_t>(rank)];
  list.erase(std::ranges::find(list, task));
  list.push_back(task);
}
constexpr auto F = Pass::forward, B = Pass::backward, W = Pass::weights;

// One micro-batch after the other, forward and backward.
std::vector<StageTask> one_by_one(int stage, int micro_batches) {
  std::vector<StageTask> list;
  for (int m = 0; m < micro_batches; ++m) list.insert(list.end(), {{F, stage, m}, {B, stage, m}});
  return list;
}

ScheduleLimits bytes(std::vector<double> kept, double most) {
  return {.kept_bytes = std::move(kept), .most_bytes = most};
}
void nothing(PipelineSchedule&) {}

const std::vector<Planted>& planted() {
  static const std::vector<Planted> all{
      // Messages come in the order in which they were sent.
      {"the first rank begins with the second micro-batch",
       "1f1b",
       {3, 4},
       [](auto& s) {
         move_before(s, 0, {F, 0, 1}, {F, 0, 0});
       },
       "sends micro-batch 1 first"},
      {"a middle rank wants the second micro-batch first",
       "1f1b",
       {3, 4},
       [](auto& s) {
         move_before(s, 1, {F, 1, 1}, {F, 1, 0});
       },
       "sends micro-batch 0 first"},
      {"the last rank wants the last micro-batch first",
       "gpipe",
       {2, 4},
       [](auto& s) {
         move_before(s, 1, {F, 1, 3}, {F, 1, 0});
       },
       "sends micro-batch 0 first"},
      {"a rank leaves one micro-batch for last, the next does not",
       "gpipe",
       {3, 5},
       [](auto& s) {
         move_before(s, 1, {F, 1, 2}, {B, 1, 0});
       },
       "has not taken micro-batch 2"},
      {"gradients leave the last rank in another order than they are taken",
       "zero_bubble",
       {2, 4},
       [](auto& s) {
         s.ranks[1] = {{F, 1, 0}, {F, 1, 1}, {B, 1, 1}, {B, 1, 0}, {W, 1, 0}, {W, 1, 1},
                       {F, 1, 2}, {B, 1, 2}, {W, 1, 2}, {F, 1, 3}, {B, 1, 3}, {W, 1, 3}};
       },
       "sends micro-batch 1 first"},
      // A circle of ranks, each of which waits for the next.
      {"a rank wants a gradient before the next one has its input",
       "1f1b",
       {2, 3},
       [](auto& s) {
         s.ranks[0] = one_by_one(0, 3);
         s.ranks[1] = find_schedule("gpipe")->make({2, 3}).ranks[1];
       },
       "it waits for"},
      {"two ranks that keep one alive before one that keeps two",
       "1f1b",
       {3, 4},
       [](auto& s) {
         s.ranks[1] = one_by_one(1, 4);
         s.ranks[2] = {{F, 2, 0}, {F, 2, 1}, {B, 2, 0}, {B, 2, 1}, {F, 2, 2}, {F, 2, 3}, {B, 2, 2}, {B, 2, 3}};
       },
       "it waits for"},
      {"the last rank does all forward passes first, the one before keeps one alive",
       "1f1b",
       {3, 4},
       [](auto& s) {
         s.ranks[1] = one_by_one(1, 4);
         s.ranks[2] = find_schedule("gpipe")->make({3, 4}).ranks[2];
       },
       "it waits for"},
      {"the first rank keeps one alive, the last wants all",
       "gpipe",
       {4, 3},
       [](auto& s) { s.ranks[0] = one_by_one(0, 3); },
       "it waits for"},
      {"the first rank's backward pass moved before the forward pass that the last rank needs first",
       "1f1b",
       {4, 6},
       [](auto& s) {
         s.ranks[3] = find_schedule("gpipe")->make({4, 6}).ranks[3];
       },
       "it waits for"},
      {"chunks: the second stage of a rank before the first one has passed all ranks",
       "interleaved",
       {2, 2, 2},
       [](auto& s) {
         move_before(s, 0, {F, 2, 0}, {F, 0, 0});
       },
       "it waits for"},
      {"chunks: backward of the first stage before backward of the second",
       "interleaved",
       {2, 2, 2},
       [](auto& s) {
         move_before(s, 0, {B, 0, 0}, {B, 2, 0});
       },
       "it waits for"},
      {"chunks: a forward pass is put off until after the same micro-batch's second stage",
       "interleaved",
       {2, 4, 2},
       [](auto& s) {
         move_before(s, 1, {F, 1, 3}, {B, 1, 3});
       },
       "it waits for"},
      {"down and up: the last rank goes up before it has gone down",
       "zero_bubble",
       {3, 3, 2},
       [](auto& s) {
         move_before(s, 2, {F, 3, 0}, {F, 2, 0});
       },
       "it waits for"},
      {"down and up: the first rank wants its second stage first",
       "zero_bubble",
       {3, 3, 2},
       [](auto& s) {
         move_before(s, 0, {F, 5, 0}, {F, 0, 0});
       },
       "it waits for"},
      {"two directions: each first rank begins with what comes from the other",
       "bidirectional",
       {2, 4},
       [](auto& s) {
         move_before(s, 0, {F, 1, 2}, s.ranks[0].front());
         move_before(s, 1, {F, 1, 0}, s.ranks[1].front());
       },
       "it waits for"},
      // Messages that skip stages, and buffers that are full.
      {"a value that skips a rank is taken too late",
       "gpipe",
       {3, 8},
       [](auto& s) {
         s.ranks[2] = one_by_one(2, 8);
         s.ranks[0] = find_schedule("gpipe")->make({3, 8}).ranks[0];
         s.ranks[1] = find_schedule("gpipe")->make({3, 8}).ranks[1];
         move_before(s, 2, {F, 2, 7}, {F, 2, 0});
       },
       "has not taken",
       {{0, 2, F}}},
      {"weight gradients wait for a message that comes with a later pass",
       "zero_bubble",
       {2, 2},
       nothing,
       "it waits for",
       {{0, 1, W}, {1, 0, W}}},
      // Memory.
      {"all micro-batches alive where three fit",
       "gpipe",
       {3, 4},
       nothing,
       "rank 0 would keep",
       {},
       bytes({100, 100, 100}, 300)},
      {"one byte too few on the first rank",
       "1f1b",
       {3, 4},
       nothing,
       "rank 0 would keep",
       {},
       bytes({100, 100, 100}, 299)},
      {"a last stage that is larger than the others",
       "1f1b",
       {3, 4},
       nothing,
       "rank 2 would keep",
       {},
       bytes({10, 10, 301}, 300)},
      {"two stages of a rank that fit only one at a time",
       "interleaved",
       {2, 4, 2},
       nothing,
       "rank 0 would keep",
       {},
       bytes({100, 1, 100, 1}, 400)},
      {"weight gradients that are put off for too long",
       "zero_bubble",
       {2, 4},
       [](auto& s) {
         for (const int m : {0, 1, 2, 3}) move_to_end(s, 1, {W, 1, m});
       },
       "rank 1 would keep",
       {},
       bytes({1, 100}, 300)},
      {"both directions on one rank", "bidirectional", {2, 4}, nothing, "would keep", {}, bytes({100, 100}, 150)},
      {"one more forward pass before the first backward pass",
       "1f1b",
       {4, 8},
       [](auto& s) {
         move_before(s, 2, {F, 2, 2}, {B, 2, 0});
       },
       "rank 2 would keep",
       {},
       bytes({1, 1, 100, 1}, 200)},
  };
  return all;
}

TEST(ScheduleChecker, RefusesPlantedDeadlocksAndMemoryOverruns) {
  EXPECT_GE(planted().size(), 20u);
  for (const Planted& p : planted()) {
    PipelineSchedule s = find_schedule(p.schedule)->make(p.shape);
    std::vector<StageMessage> messages = chain_messages(s.stages);
    EXPECT_TRUE(check_schedule(s, messages).problems.empty()) << p.what << ": not even sound before";
    messages.insert(messages.end(), p.more.begin(), p.more.end());
    p.plant(s);
    const auto problems = check_schedule(s, messages, p.limits).problems;
    ASSERT_FALSE(problems.empty()) << p.what;
    const bool said = std::ranges::any_of(problems, [&](const auto& t) { return t.find(p.said) != std::string::npos; });
    EXPECT_TRUE(said) << p.what << ": " << problems.front();
    // It is the ranks together that cannot get on, not a list that is wrong by itself.
    EXPECT_TRUE(problems.front().find("never gets past") != std::string::npos ||
                problems.front().find("of activations at once") != std::string::npos)
        << p.what << ": " << problems.front();
  }
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
