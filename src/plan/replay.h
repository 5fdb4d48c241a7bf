#pragma once
// A pipeline's lists played through without computing anything: who waits for whom, when each task begins and ends, and
// whether everybody gets to the end. Messages behave as the ranks' own do (parallel/planned/stage_messages.h): they
// arrive in the order in which they were sent, and a sender waits when all buffers of a message are full. Since every
// rank waits for one thing at a time, the outcome does not depend on who is faster: what gets to the end here cannot
// deadlock. Pure functions.

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "plan/schedule.h"

namespace echelon {

// A value that goes from one stage to another for every micro-batch, during that pass of both; or from one part of a
// stage to another part of it.
struct StageMessage {
  int from = 0, to = 0;
  Pass pass = Pass::forward;
  double bytes = 0;
  int from_part = 0, to_part = 0;
  int buffers = 0;  // 0: as many as the distance of the stages asks for

  bool inside_stage() const { return from == to; }
  friend bool operator==(const StageMessage&, const StageMessage&) = default;
};

// How many micro-batches' worth of a message can be under way: enough that stages in between do not hold the sender up.
// Between two stages of one rank there is room for all. Where a stage runs whole steps ahead of the next one
// (per_update), it counts steps.
inline int buffers_of(const StageMessage& m) {
  if (m.buffers > 0) return m.buffers;
  return m.inside_stage() ? 2 : 1 + (m.from < m.to ? m.to - m.from : m.from - m.to);
}

// Each stage hands something to the next one, and gets a gradient back.
std::vector<StageMessage> chain_messages(int stages);

struct StageCost {  // seconds, of one micro-batch
  double forward = 1, backward = 2, weights = 0;
  double of(Pass pass) const { return pass == Pass::forward ? forward : pass == Pass::backward ? backward : weights; }
};

struct ReplayCosts {
  std::vector<StageCost> stages;                                      // by stage
  double latency = 0;                                                 // seconds of a message
  double bytes_per_second = std::numeric_limits<double>::infinity();  // of a message
};

struct TaskTime {
  StageTask task;
  double begin = 0, end = 0;
};

struct Replay {
  std::vector<std::vector<TaskTime>> ranks;  // as far as they got
  std::vector<std::string> stuck;            // for each rank that did not get to the end, what it waits for
  double seconds = 0;                        // until the last task's end

  double busy(int rank) const;
  double bubble() const;  // the idle share of all ranks' time
};

// Messages inside a stage are left out: the parts of a stage run the same list. Where a pass is cut into segments, what
// it waits for is there before the first one, and what it sends leaves with the last one, at the latest.
Replay replay(const PipelineSchedule& schedule, std::span<const StageMessage> messages, const ReplayCosts& costs);

}  // namespace echelon
