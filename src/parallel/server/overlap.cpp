// Exchange beside computation, for gradients that go to servers. A key is pushed as soon as its gradient is complete,
// while backward still runs (wait-free backward, Poseidon). With order `priority` or `enforced` the worker also goes on
// when all is pushed, and waits for a key's answer only when the next forward pass reads its parameters (P3, TicTac).
//
// Answers are taken only after backward, because that still reads the weights which they replace. Between
// `begin_overlapped` and the info when the step's `Pending` is done, everything about pushes and answers is the
// task's: the worker's thread leaves it alone.

#include "parallel/server/overlap.h"

#include <algorithm>
#include <limits>

#include "parallel/server/client.h"

namespace echelon::exchanges {

namespace {
constexpr double forever =
    std::numeric_limits<double>::infinity();  // messages are waited for with their own wait_policy
bool overlap(Range a, Range b) { return a.begin < b.end && b.begin < a.end; }
}  // namespace

void ServerClient::plan_overlap() {
  if (parts_.workers() == 1 || !parts_.order.is_early) return;
  World& world = *parts_.world;
  overlap_ = std::make_unique<ServerOverlap>();
  overlap_->defers = parts_.order.defers;
  overlap_->computed = world.make_event(), overlap_->pushed = world.make_event();
  parts_.trainer->send_buckets(overlap_->defers ? 1 : parts_.order.bytes,
                               [this](std::size_t bucket) { overlap_->buckets[bucket].ready->notify(); });
  const std::vector<Bucket>& buckets = parts_.trainer->buckets();
  for (const Bucket& b : buckets) overlap_->buckets.push_back({b.begin, {}, world.make_event()});
  for (std::uint32_t k = 0; k < keys_.size(); ++k) {
    std::vector<std::uint32_t>* list = &overlap_->rest;
    for (std::size_t b = 0; b < buckets.size(); ++b)
      if (overlap(keys_[k].range, {buckets[b].begin, buckets[b].end})) list = &overlap_->buckets[b].keys;
    list->push_back(k);
  }
  if (overlap_->defers) plan_deferring();
  overlap_->async_group = std::make_unique<AsyncGroup>(parts_.team->group());
}

void ServerClient::plan_deferring() {
  if (parts_.order.first_needed_first) parts_.mailbox->leave_by_key(parts_.order.bytes);
  overlap_->reading.resize(keys_.size());
  for (std::size_t place = 1; const std::size_t k : answering_order(0, keys_.size())) overlap_->reading[k] = place++;
  for (std::size_t k = 0; k < keys_.size(); ++k) overlap_->arrived.push_back(parts_.world->make_event());
  overlap_->furthest.resize(static_cast<std::size_t>(parts_.workers()));
  parts_.trainer->before_reading([this](Range range) { wait_for_range(range); });
}

ServerClient::~ServerClient() {
  if (!overlap_) return;
  overlap_->closing = true;
  let_everybody_go();
}

// What was waited for will not come.
void ServerClient::let_everybody_go() {
  for (auto& p : overlap_->buckets) p.ready->notify();
  for (auto& key : overlap_->arrived) key->notify();
  overlap_->computed->notify(), overlap_->pushed->notify();
}

void ServerClient::begin_overlapped(const StepInfo& info) {
  ++steps_, asks_ = asks(info);
  const std::uint64_t number = ++overlap_->steps;
  const bool asks = asks_;
  overlap_->last = overlap_->async_group->start([this, info, number, asks](Group&) {
    try {
      carry_messages(info, number, asks);
    } catch (...) {
      overlap_->failed = true;
      let_everybody_go();
      throw;
    }
  });
}

// In the task: all messages of a step.
void ServerClient::carry_messages(const StepInfo& info, std::uint64_t number, bool asks) {
  for (const ServerOverlap::PendingBucket& p : overlap_->buckets) {
    p.ready->wait(number, forever);
    if (overlap_->closing) return;
    for (const std::uint32_t k : p.keys) push_key(k, info, asks);
  }
  overlap_->computed->wait(number, forever);
  if (overlap_->closing) return;
  for (const std::uint32_t k : overlap_->rest) push_key(k, info, asks);
  ++pushes_;
  std::ranges::fill(overlap_->furthest, 0);
  if (asks) expect_answers();
  overlap_->pushed->notify();
  while (awaited_ > 0) take_next();
}

// Backward is over. Returns when the gradient is free again; unless answers are deferred, when they are there.
void ServerClient::end_overlapped() {
  const double begin = parts_.world->now();
  overlap_->computed->notify();
  overlap_->pushed->wait(overlap_->steps, forever);
  if (!overlap_->defers || overlap_->failed) overlap_->last.wait(forever);
  waited_ += parts_.world->now() - begin;
}

void ServerClient::note_arrival(std::uint32_t k) {
  overlap_->arrived[k]->notify();
  std::size_t& furthest = overlap_->furthest[static_cast<std::size_t>(keys_[k].server)];
  if (overlap_->reading[k] < furthest) out_of_order_ += 1;
  furthest = std::max(furthest, overlap_->reading[k]);
}

// Asked by every core of the worker, in a forward pass: the last step's answers.
void ServerClient::wait_for_range(Range range) {
  const std::uint64_t answers = overlap_->steps - 1;  // of the present step there are none yet
  const double begin = parts_.world->now();
  for (std::size_t k = 0; k < keys_.size(); ++k)
    if (overlap(keys_[k].range, range)) overlap_->arrived[k]->wait(answers, forever);
  const double waited = (parts_.world->now() - begin) / parts_.team->cores().count();
  std::atomic_ref(waited_).fetch_add(waited);
}

// The keys from `first` on, counted from there, in the order in which forward reads them: the same on all ranks,
// because it depends on the graph alone.
std::vector<std::size_t> ServerClient::answering_order(std::size_t first, std::size_t count) const {
  std::vector<std::size_t> order;
  std::vector<char> listed(count);
  const auto add = [&](std::size_t i) {
    if (!std::exchange(listed[i], 1)) order.push_back(i);
  };
  for (const Range& r : parts_.trainer->reading_order())
    for (std::size_t i = 0; i < count; ++i)
      if (overlap(keys_[first + i].range, r)) add(i);
  for (std::size_t i = 0; i < count; ++i) add(i);
  return order;
}

}  // namespace echelon::exchanges
