#include "parallel/team/work_scheduler.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace echelon {

namespace {

enum Kind : std::uint16_t { ask_message, work_message, nothing_left };

struct Request {
  std::int64_t from, to, enough;
  WorkTotals done;  // since the last request; bytes in all
  std::int64_t wants_to_stop;
  std::int64_t at_least;  // the first step of which it wants its part
};

}  // namespace

class WorkScheduler::Scheduler {
 public:
  Scheduler(World& world, Mailbox& mailbox, bool common)
      : mailbox_(mailbox),
        common_(common),
        workers_(world.size()),
        next_(static_cast<std::size_t>(workers_)),
        bytes_(static_cast<std::size_t>(workers_)),
        task_(world.spawn("scheduler", [this, &world] {
          serve_messages(world, mailbox_, scheduler_tag, [this](const Message& message) { handle(message); });
        })) {}

  ~Scheduler() {
    mailbox_.shut(scheduler_tag);
    task_.reset();
  }

 private:
  void handle(const Message& message) {
    Request r;
    if (message.payload().size() != sizeof r) fail("rank {} asked for work in a way that makes no sense", message.from);
    std::memcpy(&r, message.payload().data(), sizeof r);
    if (r.from < 0 || r.to < r.from) fail("rank {} asked for work of steps {} to {}", message.from, r.from, r.to);
    if (r.to != to_ || r.from != from_) begin(r);
    const auto from = static_cast<std::size_t>(message.from);
    totals_.pieces += r.done.pieces, totals_.loss += r.done.loss, totals_.correct += r.done.correct;
    totals_.terms += r.done.terms, totals_.samples += r.done.samples;
    bytes_[from] = std::max(bytes_[from], r.done.bytes);
    totals_.bytes = 0;
    for (double b : bytes_) totals_.bytes += b;
    if (r.wants_to_stop != 0) end_early();
    if (is_whole() && totals_.samples >= static_cast<double>(r.enough)) is_over_ = true;
    if (!common_) next_[from] = std::clamp(r.at_least - from_, next_[from], limit_);

    MessageHeader head{.kind = work_message, .tag = scheduler_reply_tag};
    if (!is_over_ && common_ && given_ < limit_ * workers_) {
      head.clock = from_ + given_ / workers_;
      head.key = static_cast<std::uint32_t>(given_ % workers_);
      ++given_;
    } else if (!is_over_ && !common_ && next_[from] < limit_) {
      head.clock = from_ + next_[from]++;
      head.key = static_cast<std::uint32_t>(message.from);
    } else {
      head.kind = nothing_left;
      head.clock = from_ + limit_;
    }
    if (message.from == 0)
      mailbox_.post(0, head, std::as_bytes(std::span(&totals_, 1)));
    else
      mailbox_.post(message.from, head);
  }

  void begin(const Request& r) {
    from_ = r.from, to_ = r.to, limit_ = r.to - r.from, given_ = 0;
    is_over_ = false;
    std::ranges::fill(next_, 0);
    totals_ = {};
  }

  bool is_whole() const { return limit_ == to_ - from_; }  // nobody has wanted to stop before

  // At the first step of which no part has been given out yet; unless some have been told already that all is over.
  void end_early() {
    if (is_over_) return;
    limit_ = std::min(limit_, common_ ? (given_ + workers_ - 1) / workers_ : std::ranges::max(next_));
  }

  Mailbox& mailbox_;
  bool common_;
  std::int64_t workers_;
  std::int64_t from_ = -1, to_ = -1, limit_ = 0;  // the round, and how many of its steps are to be done
  bool is_over_ = false;                          // enough samples are done
  std::int64_t given_ = 0;                        // common: pieces
  std::vector<std::int64_t> next_;                // own: steps, by worker
  std::vector<double> bytes_;                     // by worker
  WorkTotals totals_;
  std::unique_ptr<Task> task_;  // last
};

WorkScheduler::WorkScheduler(Team& team, Mailbox& mailbox, bool common)
    : world_(team.world()), mailbox_(mailbox), wait_policy_(team, mailbox), common_(common) {
  if (world_.rank() == 0) scheduler_state_ = std::make_unique<Scheduler>(world_, mailbox, common);
}

WorkScheduler::~WorkScheduler() = default;

void WorkScheduler::begin(std::int64_t from, std::int64_t to, std::int64_t enough) {
  from_ = at_least_ = expected_ = from, to_ = end_ = to, enough_ = enough;
  skipped_ = 0;
  over_ = false;
  totals_ = {};
  piece_ = {.bytes = piece_.bytes};  // the last round's last piece is not of this one
  ask();
}

void WorkScheduler::ask() {
  const Request r{from_, to_, enough_, piece_, wants_to_stop_, at_least_};
  piece_ = {.bytes = piece_.bytes};
  mailbox_.post(0, {.kind = ask_message, .tag = scheduler_tag}, std::as_bytes(std::span(&r, 1)));
}

std::optional<WorkItem> WorkScheduler::next() {
  if (over_) return std::nullopt;
  for (;;) {
    Message message;
    world_.set_status("asking for work");
    wait_policy_.take(scheduler_reply_tag, message, "with the next piece of work", [] { return 0; });
    if (message.payload().size() == sizeof totals_) std::memcpy(&totals_, message.payload().data(), sizeof totals_);
    const std::int64_t step = message.head.clock;
    const bool over = message.head.kind == nothing_left;
    if (message.from != 0 || step < from_ || step > to_ || (!over && step == to_) ||
        message.head.key >= static_cast<std::uint32_t>(world_.size()))
      fail("rank {} handed out part {} of step {}, and the round has steps {} to {}", message.from, message.head.key,
           step, from_, to_);
    if (!common_) skipped_ += step - expected_, expected_ = step + 1;
    if (over) {
      over_ = true;
      end_ = step;
      return std::nullopt;
    }
    ask();
    if (common_ || step >= at_least_) return WorkItem{step, static_cast<int>(message.head.key)};
    ++skipped_;  // it was asked for before the worker knew
  }
}

void WorkScheduler::done(const WorkTotals& piece, bool wants_to_stop) {
  piece_.pieces += piece.pieces, piece_.loss += piece.loss, piece_.correct += piece.correct;
  piece_.terms += piece.terms, piece_.samples += piece.samples;
  piece_.bytes = piece.bytes;
  wants_to_stop_ = wants_to_stop;
}

ExchangeKind::Traffic work_traffic(int workers) {
  return (workers - 1) * ExchangeKind::Traffic{3, 2.0 * Mailbox::header_bytes + sizeof(Request)};
}

}  // namespace echelon
