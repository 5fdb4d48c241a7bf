#pragma once
// Decides which worker does which part of which batch where workers go at their own pace. The scheduler on rank 0 hands
// out work: to each worker its own part of the next step, or, with common work, whatever part is next, so that a slow
// worker does less. Workers report what they have done. When one of them asks to stop, the round ends after a step of
// which all parts are done, so that every sample is used exactly once. A round also ends when `enough` samples are
// done: a worker that is behind still does the part it has and the one it has asked for; the rest is left out.
//
// A worker asks for its next piece before it begins the one it has, so nobody waits for the scheduler. Every piece
// costs a message and one back (work_traffic).

#include <limits>
#include <memory>
#include <optional>

#include "parallel/exchange.h"
#include "parallel/team/message_wait.h"
#include "world/mailbox/mailbox.h"

namespace echelon {

struct WorkItem {
  std::int64_t step = 0;
  int part = 0;
};

struct WorkTotals {  // of pieces that are done, by everybody
  double pieces = 0, loss = 0, correct = 0, terms = 0, samples = 0;
  double bytes = 0;  // sent by everybody, so far

  WorkTotals& operator+=(const WorkTotals& o) {
    pieces += o.pieces, loss += o.loss, correct += o.correct, terms += o.terms, samples += o.samples, bytes += o.bytes;
    return *this;
  }
};

class WorkScheduler {
 public:
  static constexpr int scheduler_tag = 2, scheduler_reply_tag = 3;

  // All ranks make one; the scheduler is on rank 0.
  WorkScheduler(Team& team, Mailbox& mailbox, bool common);
  ~WorkScheduler();

  // The pieces of the steps [from, to), all ranks with the same.
  void begin(std::int64_t from, std::int64_t to, std::int64_t enough = std::numeric_limits<std::int64_t>::max());
  std::optional<WorkItem> next();
  // This worker leaves out its own parts of the steps before that one: the others have closed these steps without it.
  void skip_to(std::int64_t step) { at_least_ = step; }
  std::int64_t skipped() const { return skipped_; }  // in this round
  // This worker's piece is done: told to the scheduler with the next request. `bytes`: what it has sent so far, in all.
  void done(const WorkTotals& piece, bool wants_to_stop);
  std::int64_t end() const { return end_; }  // after next() had nothing more: the step that the round has reached
  // Rank 0: of this round, as far as the scheduler knew when it last answered.
  const WorkTotals& totals() const { return totals_; }

 private:
  class Scheduler;
  void ask();
  World& world_;
  Mailbox& mailbox_;
  MessageWait wait_policy_;
  std::unique_ptr<Scheduler> scheduler_state_;
  std::int64_t from_ = 0, to_ = 0, end_ = 0, enough_ = 0;
  std::int64_t at_least_ = 0, expected_ = 0, skipped_ = 0;
  bool over_ = false, common_ = false;
  WorkTotals piece_, totals_;
  bool wants_to_stop_ = false;
};

// What that costs in a step, in which every worker does a piece: a request and an answer for all but rank 0.
ExchangeKind::Traffic work_traffic(int workers);

}  // namespace echelon
