// Two pipelines over the same ranks in opposite directions, as `bidirectional`, whose weight gradients are tasks of
// their own, as in `zero_bubble` (DualPipe, DeepSeek-V3 2024). A rank has two stages, one of each direction; forward
// passes come first while neither stage has more micro-batches alive than under 1f1b, nor both together more than p;
// weight gradients fill what would be idle. The lists come from a simulation in which every task takes one unit of
// time.

#include <algorithm>
#include <array>
#include <limits>

#include "plan/schedules/schedules.h"

namespace echelon {

namespace {

class DualPipe {
 public:
  explicit DualPipe(const ScheduleShape& s)
      : p_(s.ranks),
        m_(s.micro_batches),
        forward_done_(static_cast<std::size_t>(p_ * m_), never),
        backward_done_(forward_done_) {
    schedule_ = {.stages = p_, .micro_batches = m_, .splits_weights = true, .ranks = {}};
    schedule_.ranks.resize(static_cast<std::size_t>(p_));
    for (int k = 0; k < p_; ++k) ranks_.push_back({{line(k, 0, m_ / 2), line(p_ - 1 - k, m_ / 2, m_)}});
  }

  PipelineSchedule run() {
    const auto tasks = static_cast<std::size_t>(3 * m_);
    for (int now = 0; std::ranges::any_of(schedule_.ranks, [&](const auto& l) { return l.size() < tasks; }); ++now)
      for (int rank = 0; rank < p_; ++rank)
        if (!advance(rank, Pass::forward, now) && !advance(rank, Pass::backward, now))
          advance(rank, Pass::weights, now);
    return std::move(schedule_);
  }

 private:
  static constexpr int never = std::numeric_limits<int>::max();
  struct Line {  // of one direction on one rank: the next micro-batch of each pass
    int stage, first, last;
    std::array<int, 3> next;
    int done(Pass pass) const { return next[static_cast<std::size_t>(pass)] - first; }
  };
  struct Rank {
    std::array<Line, 2> lines;
  };
  static Line line(int stage, int first, int last) { return {stage, first, last, {first, first, first}}; }

  // One pass of that kind, of the direction that has less of them behind it; false if none can be run now.
  bool advance(int rank, Pass pass, int now) {
    Rank& r = ranks_[static_cast<std::size_t>(rank)];
    Line* chosen = nullptr;
    for (Line& line : r.lines)
      if (can_run(r, line, pass, now) && (!chosen || line.done(pass) < chosen->done(pass))) chosen = &line;
    if (!chosen) return false;
    const int m = chosen->next[static_cast<std::size_t>(pass)]++;
    if (pass == Pass::forward) forward_done_[at(chosen->stage, m)] = now + 1;
    if (pass == Pass::backward) backward_done_[at(chosen->stage, m)] = now + 1;
    schedule_.ranks[static_cast<std::size_t>(rank)].push_back({pass, chosen->stage, m});
    return true;
  }
  bool can_run(const Rank& rank, const Line& line, Pass pass, int now) const {
    const int m = line.next[static_cast<std::size_t>(pass)];
    if (m == line.last) return false;
    if (pass == Pass::weights) return line.done(Pass::weights) < line.done(Pass::backward);
    if (pass == Pass::backward)
      return line.done(Pass::backward) < line.done(Pass::forward) &&
             (line.stage == p_ - 1 ? forward_done_[at(line.stage, m)] : backward_done_[at(line.stage + 1, m)]) <= now;
    int alive = 0;
    for (const Line& l : rank.lines) alive += l.done(Pass::forward) - l.done(Pass::weights);
    return alive < p_ && line.done(Pass::forward) - line.done(Pass::backward) < p_ - line.stage &&
           (line.stage == 0 || forward_done_[at(line.stage - 1, m)] <= now);
  }
  std::size_t at(int stage, int m) const { return static_cast<std::size_t>(stage * m_ + m); }

  int p_, m_;
  std::vector<Rank> ranks_;
  std::vector<int> forward_done_, backward_done_;  // when, by stage and micro-batch
  PipelineSchedule schedule_;
};

PipelineSchedule make_dualpipe(const ScheduleShape& s) { return DualPipe(s).run(); }

// The middle ranks wait for p / 2 - 1 forward passes at the start; from then on everybody has work.
double dualpipe_bubble(const ScheduleShape& s) {
  const double idle = s.ranks / 2.0 - 1;
  return idle / (3.0 * s.micro_batches + idle);
}

}  // namespace

ScheduleKind dualpipe_schedule() {
  return {"dualpipe", "two pipelines in opposite directions whose weight gradients fill the gaps", make_dualpipe,
          refuse_two_directions, dualpipe_bubble};
}

}  // namespace echelon
