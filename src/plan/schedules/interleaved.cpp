// Rank k has the stages k, k + p, k + 2p, ... Micro-batches go in groups of p: a rank runs a group through its first
// stage, then through its second, and so on; backward the other way round.

#include <fmt/format.h>

#include <algorithm>

#include "plan/schedules/schedules.h"

namespace echelon {

namespace {

// The n-th task of one direction on any rank: which of its stages, and which micro-batch.
struct ChunkTask {
  int chunk, micro_batch;
};
ChunkTask nth(const ScheduleShape& s, int n, bool forward) {
  const int in_group = n % (s.ranks * s.chunks), group = n / (s.ranks * s.chunks);
  const int chunk = in_group / s.ranks;
  return {forward ? chunk : s.chunks - 1 - chunk, group * s.ranks + in_group % s.ranks};
}

PipelineSchedule make_interleaved(const ScheduleShape& s) {
  PipelineSchedule schedule{.stages = s.ranks * s.chunks, .micro_batches = s.micro_batches, .ranks = {}};
  const int all = s.micro_batches * s.chunks;
  for (int rank = 0; rank < s.ranks; ++rank) {
    std::vector<StageTask>& list = schedule.ranks.emplace_back();
    const auto add = [&](int n, Pass pass) {
      const ChunkTask t = nth(s, n, pass == Pass::forward);
      list.push_back({pass, t.chunk * s.ranks + rank, t.micro_batch});
    };
    const int warm_up = std::min(all, 2 * (s.ranks - rank - 1) + (s.chunks - 1) * s.ranks);
    int forward = 0;
    for (; forward < warm_up; ++forward) add(forward, Pass::forward);
    for (int backward = 0; backward < all; ++backward) {
      if (forward < all) add(forward++, Pass::forward);
      add(backward, Pass::backward);
    }
  }
  return schedule;
}

std::string refuse_interleaved(const ScheduleShape& s) {
  if (s.chunks < 2) return "needs chunks = 2 or more: the stages on each rank";
  if (s.micro_batches % s.ranks != 0)
    return fmt::format("needs a number of micro-batches that {} ranks divide, not {}", s.ranks, s.micro_batches);
  return "";
}

double interleaved_bubble(const ScheduleShape& s) {
  const double p = s.ranks, work = s.micro_batches * s.chunks;
  return (p - 1) / (work + p - 1);
}

}  // namespace

ScheduleKind interleaved_schedule() {
  return {"interleaved", "1f1b with several stages on each rank", make_interleaved, refuse_interleaved,
          interleaved_bubble};
}

}  // namespace echelon
