#include "world/sim/scheduler.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.h"
#include "world/sim/simulation.h"

namespace echelon::sim {

Scheduler::Scheduler(std::size_t stack_bytes, int owners, double longest)
    : pool_(stack_bytes), held_(static_cast<std::size_t>(owners), 0), longest_(longest) {}

Scheduler::~Scheduler() = default;

void Scheduler::at(double time, int owner, What what, std::function<void()> action) {
  heap_.push_back({std::max(time, now_), numbers_++, owner, what, std::move(action)});
  std::push_heap(heap_.begin(), heap_.end());
}

std::shared_ptr<Strand> Scheduler::start(int owner, const std::string& name, std::function<void()> body) {
  std::shared_ptr<Strand> strand(new Strand(pool_, owner, name, std::move(body)));
  strands_.push_back(strand);
  ++alive_;
  at(now_, owner, What::start, [this, s = strand.get()] { resume(*s); });
  return strand;
}

void Scheduler::hold(int owner, double until) {
  double& held = held_[static_cast<std::size_t>(owner)];
  held = std::max(held, until);
}

void Scheduler::resume(Strand& strand) {
  strand.state_ = Strand::State::running;
  current_ = &strand;
  strand.fiber_.run();
  current_ = nullptr;
  if (!strand.ended()) return;
  --alive_;
  if (alive_ * 2 < strands_.size()) std::erase_if(strands_, [](const auto& s) { return s->ended(); });
}

// A strand has one event for its deadlines, however often it waits: most waits end long before, and thousands of ranks
// that each had left an event behind for each of them would fill the memory.
void Scheduler::set_alarm(Strand& strand, double time) {
  strand.alarm_ = time;
  at(time, strand.owner_, What::deadline, [this, me = strand.shared_from_this(), time] {
    if (me->alarm_ != time) return;  // an earlier one has taken its place
    me->alarm_ = never;
    if (me->state_ != Strand::State::blocked || me->deadline_ == never) return;
    if (me->deadline_ > now_) return set_alarm(*me, me->deadline_);
    me->timed_out_ = true;
    resume(*me);
  });
}

bool Scheduler::block_quietly(double deadline, const Describe& waits_for) {
  invariant(current_ != nullptr, "only a rank of the simulation waits");
  Strand& me = *current_;
  me.state_ = Strand::State::blocked;
  me.timed_out_ = false;
  me.stuck_ = nullptr;
  me.waits_for_ = &waits_for;
  me.deadline_ = deadline;
  if (deadline < me.alarm_) set_alarm(me, deadline);
  me.fiber_.suspend();
  me.deadline_ = never;
  me.waits_for_ = nullptr;
  return !me.timed_out_;
}

bool Scheduler::block(double deadline, const Describe& waits_for) {
  const bool in_time = block_quietly(deadline, waits_for);
  if (current_->stuck_) std::rethrow_exception(std::exchange(current_->stuck_, nullptr));
  return in_time;
}

void Scheduler::wake(Strand& strand) {
  if (strand.state_ != Strand::State::blocked) return;
  strand.state_ = Strand::State::ready;
  at(now_, strand.owner_, What::resume, [this, s = &strand] { resume(*s); });
}

void Scheduler::wake_all(int owner) {
  for (const auto& strand : strands_)
    if (strand->owner_ == owner && !strand->ended()) wake(*strand);
}

void Scheduler::run() {
  while (alive_ > 0) {
    if (heap_.empty() || heap_.front().time > longest_) {
      everybody_is_stuck();
      continue;
    }
    std::pop_heap(heap_.begin(), heap_.end());
    Event event = std::move(heap_.back());
    heap_.pop_back();
    if (event.owner != nobody && held_[static_cast<std::size_t>(event.owner)] > event.time) {
      at(held_[static_cast<std::size_t>(event.owner)], event.owner, event.what, std::move(event.action));
      continue;
    }
    now_ = event.time;
    ++done_;
    mix(std::bit_cast<std::uint64_t>(now_));
    mix((static_cast<std::uint64_t>(event.owner + 1) << 8) | static_cast<std::uint64_t>(event.what));
    event.action();
  }
}

void Scheduler::everybody_is_stuck() {
  const bool late = !heap_.empty();
  if (++stuck_ > 100) on_hopeless();
  std::string all;
  int count = 0;
  for (const auto& strand : strands_)
    if (!strand->ended() && strand->waits_for_ && ++count <= 20)
      all += fmt::format("\n  rank {}{} waits for {}", strand->owner_,
                         strand->name_.empty() ? "" : " (" + strand->name_ + ")", (*strand->waits_for_)());
  if (count > 20) all += fmt::format("\n  and {} more", count - 20);
  const double limit = longest_;
  if (late) longest_ = std::max(heap_.front().time, now_ + 1);
  const std::string why = late ? fmt::format("the simulation's limit of {} s is reached", limit)
                               : fmt::format("at {:.6f} s nothing is on its way and no rank can go on", now_);
  for (const auto& strand : strands_) {
    if (strand->ended() || strand->state_ != Strand::State::blocked) continue;
    strand->stuck_ = std::make_exception_ptr(Deadlock(
        fmt::format("{}: rank {} waits for {}; all that wait:{}", why, strand->owner_, (*strand->waits_for_)(), all)));
    wake(*strand);
  }
}

}  // namespace echelon::sim
