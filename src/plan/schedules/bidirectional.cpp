// The first half of the micro-batches goes down the ranks, the second half up: rank k has stage k for the former and
// stage p - 1 - k for the latter. While one half fills its pipe, the other one's work is there. Each stage is on two
// ranks, which sum their contributions as data-parallel ranks do.

#include <fmt/format.h>

#include <algorithm>

#include "plan/schedules/schedules.h"

namespace echelon {

namespace {

// The two lists of a rank merged: a simulation with forward 1 and backward 2 decides which comes first.
PipelineSchedule make_bidirectional(const ScheduleShape& s) {
  const int p = s.ranks, half = s.micro_batches / 2;
  PipelineSchedule schedule{.stages = p, .micro_batches = s.micro_batches, .ranks = {}};
  struct Line {  // of one direction on one rank
    std::vector<StageTask> list;
    std::size_t next = 0;
  };
  struct Rank {
    Line lines[2];
    int free_at = 0;
  };
  std::vector<Rank> ranks(static_cast<std::size_t>(p));
  for (int k = 0; k < p; ++k) {
    auto& lines = ranks[static_cast<std::size_t>(k)].lines;
    lines[0].list = one_f_one_b_list(k, 0, half, p - k);
    lines[1].list = one_f_one_b_list(p - 1 - k, half, s.micro_batches, k + 1);
  }
  constexpr int never = 1 << 30;
  const auto at = [&](int stage, int m) { return static_cast<std::size_t>(stage * s.micro_batches + m); };
  std::vector<int> forward(at(p, 0), never), backward(at(p, 0), never);  // when done
  const auto ready = [&](const StageTask& t) {
    if (t.pass == Pass::forward) return t.stage == 0 ? 0 : forward[at(t.stage - 1, t.micro_batch)];
    return t.stage == p - 1 ? forward[at(t.stage, t.micro_batch)] : backward[at(t.stage + 1, t.micro_batch)];
  };
  schedule.ranks.resize(ranks.size());
  std::size_t left = static_cast<std::size_t>(2 * p * s.micro_batches);
  for (int now = 0; left > 0; ++now)
    for (std::size_t k = 0; k < ranks.size(); ++k) {
      Rank& rank = ranks[k];
      if (rank.free_at > now) continue;
      Line* chosen = nullptr;  // the one with less done, if both have something to do
      for (Line& line : rank.lines)
        if (line.next < line.list.size() && ready(line.list[line.next]) <= now &&
            (!chosen || line.next < chosen->next || line.list[line.next].pass > chosen->list[chosen->next].pass))
          chosen = &line;
      if (!chosen) continue;
      const StageTask t = chosen->list[chosen->next++];
      rank.free_at = now + (t.pass == Pass::forward ? 1 : 2);
      (t.pass == Pass::forward ? forward : backward)[at(t.stage, t.micro_batch)] = rank.free_at;
      schedule.ranks[k].push_back(t);
      --left;
    }
  return schedule;
}

// Chimera with as many micro-batches as stages leaves p/2 - 1 units of time of each direction.
double bidirectional_bubble(const ScheduleShape& s) {
  const double p = s.ranks, m = s.micro_batches;
  return (p - 2) / (3 * m / 2 + p - 2);
}

}  // namespace

std::string refuse_two_directions(const ScheduleShape& s) {
  if (std::string why = refuse_chunks(s); !why.empty()) return why;
  if (s.ranks % 2 != 0) return fmt::format("needs an even number of stages, not {}", s.ranks);
  if (s.micro_batches % 2 != 0) return fmt::format("needs an even number of micro-batches, not {}", s.micro_batches);
  return "";
}

ScheduleKind bidirectional_schedule() {
  return {"bidirectional", "two pipelines over the same ranks in opposite directions", make_bidirectional,
          refuse_two_directions, bidirectional_bubble};
}

}  // namespace echelon
