// 1f1b in which the gradients of weights, for which no other stage waits, are tasks of their own. They are put off
// until the rank would be idle, or until as many micro-batches are alive as 1f1b keeps on its first rank. The lists
// come from a simulation in which every task takes one unit of time.
//
// One chunk is ZB-H1: the last rank waits for p - 1 forward passes at the start, a third of 1f1b's idle time. With two
// chunks (ZB-V) rank k has the stages k and 2p - 1 - k: micro-batches go down the ranks and back up again. A forward
// pass of a stage is then half as long, so the last rank waits half as long: a sixth, with the same memory.

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "plan/schedules/schedules.h"

namespace echelon {

namespace {

class ZeroBubble {
 public:
  explicit ZeroBubble(const ScheduleShape& s)
      : p_(s.ranks), chunks_(s.chunks), m_(s.micro_batches), done_(static_cast<std::size_t>(p_ * chunks_)) {
    schedule_ = {.stages = p_ * chunks_, .micro_batches = m_, .splits_weights = true, .ranks = {}};
    schedule_.ranks.resize(static_cast<std::size_t>(p_));
    for (auto* when : {&forward_done_, &backward_done_})
      when->assign(done_.size(), std::vector<int>(static_cast<std::size_t>(m_), never));
  }

  PipelineSchedule run() {
    const auto tasks = static_cast<std::size_t>(3 * m_ * chunks_);
    for (int now = 0; std::ranges::any_of(schedule_.ranks, [&](const auto& l) { return l.size() < tasks; }); ++now)
      for (int rank = p_ - 1; rank >= 0; --rank) chunks_ == 1 ? advance(rank, now) : advance_in_v(rank, now);
    return std::move(schedule_);
  }

 private:
  static constexpr int never = std::numeric_limits<int>::max();
  struct Done {  // micro-batches of a stage
    int forward = 0, backward = 0, weights = 0;
  };
  Done& done(int stage) { return done_[static_cast<std::size_t>(stage)]; }

  // What a rank with one stage does in the unit of time that begins now.
  void advance(int stage, int now) {
    const Done& r = done(stage);
    if (r.forward - r.backward < p_ - stage && r.forward - r.weights < p_ && try_forward(stage, stage, now)) return;
    if (try_backward(stage, stage, now)) return;
    try_weights(stage, stage);
  }
  // The same of one with two stages. What is further on its way comes first; new micro-batches come last, and only
  // while no more are alive than in 1f1b (where a stage is twice as large).
  void advance_in_v(int rank, int now) {
    const int down = rank, up = 2 * p_ - 1 - rank;
    const bool room = alive(down) + alive(up) < 2 * p_;
    if (room && try_forward(rank, up, now)) return;
    if (try_backward(rank, down, now) || try_backward(rank, up, now)) return;
    if (room && try_forward(rank, down, now)) return;
    const bool older = done(down).weights <= done(up).weights;
    if (try_weights(rank, older ? down : up)) return;
    try_weights(rank, older ? up : down);
  }
  int alive(int stage) { return done(stage).forward - done(stage).weights; }

  bool try_forward(int rank, int stage, int now) {
    int& next = done(stage).forward;
    if (next == m_ || forward_ready(stage, next) > now) return false;
    forward_done_[static_cast<std::size_t>(stage)][static_cast<std::size_t>(next)] = now + 1;
    return add(rank, {Pass::forward, stage, next++});
  }
  bool try_backward(int rank, int stage, int now) {
    int& next = done(stage).backward;
    if (next == done(stage).forward || backward_ready(stage, next) > now) return false;
    backward_done_[static_cast<std::size_t>(stage)][static_cast<std::size_t>(next)] = now + 1;
    return add(rank, {Pass::backward, stage, next++});
  }
  bool try_weights(int rank, int stage) {
    int& next = done(stage).weights;
    return next < done(stage).backward && add(rank, {Pass::weights, stage, next++});
  }
  bool add(int rank, const StageTask& task) {
    schedule_.ranks[static_cast<std::size_t>(rank)].push_back(task);
    return true;
  }
  int forward_ready(int stage, int m) const {
    return stage == 0 ? 0 : forward_done_[static_cast<std::size_t>(stage - 1)][static_cast<std::size_t>(m)];
  }
  int backward_ready(int stage, int m) const {
    const auto s = static_cast<std::size_t>(stage), i = static_cast<std::size_t>(m);
    return s + 1 == done_.size() ? forward_done_[s][i] : backward_done_[s + 1][i];
  }

  int p_, chunks_, m_;
  std::vector<Done> done_;                                      // by stage
  std::vector<std::vector<int>> forward_done_, backward_done_;  // when, by stage and micro-batch
  PipelineSchedule schedule_;
};

PipelineSchedule make_zero_bubble(const ScheduleShape& s) { return ZeroBubble(s).run(); }

std::string refuse_zero_bubble(const ScheduleShape& s) {
  return s.chunks <= 2 ? "" : fmt::format("has one or two stages on each rank, not {}", s.chunks);
}

// The last rank waits for p - 1 forward passes of a stage and has work from then on.
double zero_bubble_bubble(const ScheduleShape& s) {
  const double p = s.ranks, passes = 3.0 * s.micro_batches * s.chunks;
  return (p - 1) / (passes + p - 1);
}

}  // namespace

ScheduleKind zero_bubble_schedule() {
  return {"zero_bubble",      "1f1b whose weight gradients fill the gaps; chunks=2: down the ranks and back up",
          make_zero_bubble,   refuse_zero_bubble,
          zero_bubble_bubble, true};
}

}  // namespace echelon
