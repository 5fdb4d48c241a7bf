// 1f1b in which the gradients of weights, for which no other stage waits, are tasks of their own. They are put off
// until the rank would be idle, or until as many micro-batches are alive as 1f1b keeps on its first rank (ZB-H1). The
// lists come from a simulation in which every task takes one unit of time.

#include <algorithm>
#include <limits>

#include "plan/schedules/schedules.h"

namespace echelon {

namespace {

class ZeroBubble {
 public:
  explicit ZeroBubble(const ScheduleShape& s) : p_(s.ranks), m_(s.micro_batches), rank_(static_cast<std::size_t>(p_)) {
    schedule_ = {.stages = p_, .micro_batches = m_, .splits_weights = true, .ranks = {}};
    schedule_.ranks.resize(rank_.size());
    for (auto* done : {&forward_done_, &backward_done_})
      done->assign(rank_.size(), std::vector<int>(static_cast<std::size_t>(m_), never));
  }

  PipelineSchedule run() {
    const auto tasks = static_cast<std::size_t>(3 * m_);
    for (int now = 0; std::ranges::any_of(schedule_.ranks, [&](const auto& l) { return l.size() < tasks; }); ++now)
      for (int stage = p_ - 1; stage >= 0; --stage) advance(stage, now);
    return std::move(schedule_);
  }

 private:
  static constexpr int never = std::numeric_limits<int>::max();
  struct Rank {
    int forward = 0, backward = 0, weights = 0;  // micro-batches that are done
  };

  // What stage `stage` does in the unit of time that begins now.
  void advance(int stage, int now) {
    Rank& r = rank_[static_cast<std::size_t>(stage)];
    if (r.forward < m_ && r.forward - r.backward < p_ - stage && r.forward - r.weights < p_ &&
        forward_ready(stage, r.forward) <= now)
      return add(stage, Pass::forward, r.forward++, now);
    if (r.backward < r.forward && backward_ready(stage, r.backward) <= now)
      return add(stage, Pass::backward, r.backward++, now);
    if (r.weights < r.backward) add(stage, Pass::weights, r.weights++, now);
  }
  void add(int stage, Pass pass, int micro_batch, int now) {
    const auto s = static_cast<std::size_t>(stage), m = static_cast<std::size_t>(micro_batch);
    schedule_.ranks[s].push_back({pass, stage, micro_batch});
    if (pass == Pass::forward) forward_done_[s][m] = now + 1;
    if (pass == Pass::backward) backward_done_[s][m] = now + 1;
  }
  int forward_ready(int stage, int m) const {
    return stage == 0 ? 0 : forward_done_[static_cast<std::size_t>(stage - 1)][static_cast<std::size_t>(m)];
  }
  int backward_ready(int stage, int m) const {
    return stage == p_ - 1 ? 0 : backward_done_[static_cast<std::size_t>(stage + 1)][static_cast<std::size_t>(m)];
  }

  int p_, m_;
  std::vector<Rank> rank_;
  std::vector<std::vector<int>> forward_done_, backward_done_;  // when, by stage and micro-batch
  PipelineSchedule schedule_;
};

PipelineSchedule make_zero_bubble(const ScheduleShape& s) { return ZeroBubble(s).run(); }

// A third of 1f1b's: the last rank waits for p - 1 forward passes and has work from then on.
double zero_bubble_bubble(const ScheduleShape& s) {
  const double p = s.ranks, m = s.micro_batches;
  return (p - 1) / (3 * m + p - 1);
}

}  // namespace

ScheduleKind zero_bubble_schedule() {
  return {"zero_bubble", "1f1b whose weight gradients fill the gaps", make_zero_bubble, refuse_chunks,
          zero_bubble_bubble};
}

}  // namespace echelon
