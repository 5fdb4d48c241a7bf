#pragma once
// Who computes what in which order: for each rank of a pipeline a list of tasks, as plain data. A task is one pass of
// one stage on one micro-batch; a micro-batch is a logical shard. Every rank runs its list from top to bottom and waits
// for what a task needs; whether the lists can deadlock, and how many micro-batches are alive at once, is found out
// before the first step (plan/check.h), what they cost by replaying them (plan/replay.h).
//
//   gpipe        all forward passes, then all backward passes (Huang et al., 2019)
//   1f1b         after a warm-up one forward, one backward: no more micro-batches alive than stages (PipeDream-Flush)
//   interleaved  1f1b with several stages ("chunks") on each rank: a smaller bubble, more messages (Megatron-LM, 2021)
//   zero_bubble  weight gradients are tasks of their own and fill the gaps (Qi et al., 2023: ZB-H1's memory); with two
//                chunks the second half of the layers goes back up the ranks (ZB-V)
//   pipedream    every step's update is made by each stage as soon as it can, and the pipeline never runs empty
//                (Harlap et al., 2018); with a result of its own
//   ampnet       no list at all: a stage runs whatever arrives, and updates by itself (Gaunt et al., 2017); the list
//   here
//                is the one that stages of equal speed would follow
//   bidirectional  two pipelines over the same ranks in opposite directions (Chimera, Li and Hoefler, 2021)
//
// Every stage runs its backward passes in the order of micro-batches, because their contributions are summed in that
// order, or in one that is known beforehand (plan/batch_split.h). Pure functions, thread-safe.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace echelon {

// `weights` computes gradients of weights that nobody waits for; schedules without it do all of that in `backward`.
enum class Pass : std::uint8_t { forward, backward, weights };
std::string_view name_of(Pass pass);  // "forward", "backward", "weight gradients"

struct StageTask {
  Pass pass = Pass::forward;
  int stage = 0, micro_batch = 0;
  int segment = 0;  // of the pass, where passes are cut at exchanges between the parts of a stage (StageSegments)
  friend bool operator==(const StageTask&, const StageTask&) = default;
};
std::string to_string(const StageTask& task);  // "backward of stage 1, micro-batch 5"

// Of the stages: into how many segments a forward and a backward pass are cut. A segment ends where what it has
// computed goes to other parts of the stage; while that is on its way a rank works on something else. Not there: one
// each.
using StageSegments = std::vector<std::array<int, 2>>;
inline int segments_of(const StageSegments& segments, int stage, Pass pass) {
  if (static_cast<std::size_t>(stage) >= segments.size() || pass == Pass::weights) return 1;
  return segments[static_cast<std::size_t>(stage)][static_cast<std::size_t>(pass)];
}

struct PipelineSchedule {
  int stages = 1, micro_batches = 1;
  bool splits_weights = false;  // whether there are `weights` tasks
  // After so many micro-batches a stage updates its weights and goes on, without waiting for other stages; 0: after all
  // of them, and all stages together.
  int per_update = 0;
  StageSegments segments = {};                // by stage
  bool in_order = true;                       // a stage's backward passes come in the order of micro-batches
  std::vector<std::vector<StageTask>> ranks;  // each rank's list

  int ranks_count() const { return static_cast<int>(ranks.size()); }
};

struct ScheduleShape {
  int ranks = 1, micro_batches = 1;
  int chunks = 1;  // stages on each rank: `interleaved` has two or more, `zero_bubble` one or two
};

struct ScheduleKind {
  std::string name;
  std::string about;
  PipelineSchedule (*make)(const ScheduleShape& shape);
  // Why there is no such schedule of that shape; empty if there is one.
  std::string (*refusal)(const ScheduleShape& shape);
  // The idle share of a rank's time if every pass of every stage takes the same time: forward 1, backward 2 in all.
  double (*bubble)(const ScheduleShape& shape);
  bool turns_back = false;  // every second chunk goes back up the ranks: the last rank has two neighbouring stages
  // Gradients are of weights that are several updates old: the result belongs to recipe and plan, and is not that of
  // exact training.
  bool own_result = false;
};

const std::vector<ScheduleKind>& schedule_kinds();
const ScheduleKind* find_schedule(std::string_view name);  // null: there is none
std::vector<std::string> pipeline_schedule_names();

// Where in the pipeline a stage is, if micro-batches go down the ranks first.
int position_of(const ScheduleKind& kind, int stage, int ranks);

// Which rank has a stage for a micro-batch, as the lists say; -1 if none.
int rank_of(const PipelineSchedule& schedule, int stage, int micro_batch);

}  // namespace echelon
