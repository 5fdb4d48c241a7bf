#include "parallel/server/overlap.h"

#include <algorithm>
#include <limits>

namespace echelon::exchanges {

namespace {
constexpr double no_limit = std::numeric_limits<double>::infinity();  // messages have their own time limits
}  // namespace

ServerOverlap::ServerOverlap(const ExchangeParts& parts, const ServerMap& map, Pusher& pusher, WorkerInbox& inbox)
    : parts_(parts),
      map_(map),
      pusher_(pusher),
      inbox_(inbox),
      defers_(parts.order.defers),
      pushed_(parts.world->make_event()),
      pipeline_(parts.team->group(),
                {.exchange = [this](Group&, std::uint64_t step,
                                    std::size_t bucket) { or_release([&] { push(step, keys_[bucket]); }); },
                 .conclude = [this](Group&, std::uint64_t step) { or_release([&] { conclude(step); }); }}) {
  parts.trainer->send_buckets(defers_ ? 1 : parts.order.bytes,
                              [this](std::size_t bucket) { pipeline_.complete(bucket); });
  assign_keys(parts.trainer->buckets());
  pipeline_.set_buckets(keys_.size());
  if (defers_) defer_answers();
}

ServerOverlap::~ServerOverlap() { release_waiting(); }

void ServerOverlap::assign_keys(const std::vector<Bucket>& buckets) {
  keys_.resize(buckets.size());
  for (std::uint32_t k = 0; k < map_.keys.size(); ++k) {
    std::vector<std::uint32_t>* list = &rest_;
    for (std::size_t b = 0; b < buckets.size(); ++b)
      if (overlaps(map_.keys[k].range, {buckets[b].begin, buckets[b].end})) list = &keys_[b];
    list->push_back(k);
  }
}

void ServerOverlap::defer_answers() {
  if (parts_.order.first_needed_first) parts_.mailbox->leave_by_key(parts_.order.bytes);
  const std::size_t keys = map_.keys.size();
  reading_.resize(keys);
  for (std::size_t place = 1; const std::size_t k : map_.reading_order({0, keys})) reading_[k] = place++;
  for (std::size_t k = 0; k < keys; ++k) arrived_.push_back(parts_.world->make_event());
  furthest_.resize(static_cast<std::size_t>(parts_.workers()));
  parts_.trainer->hooks().before_reading = [this](Range range) { wait_for(range); };
}

void ServerOverlap::begin(const StepInfo& info, bool asks) {
  steps_[(pipeline_.steps() + 1) % 2] = {info, asks};
  pipeline_.begin();
}

void ServerOverlap::end() {
  const double begin = parts_.world->now();
  pipeline_.end_backward();
  pushed_->wait(pipeline_.steps(), no_limit);
  if (!defers_ || failed_) pipeline_.finish();
  waited_ += parts_.world->now() - begin;
}

// In the task.
void ServerOverlap::push(std::uint64_t step, const std::vector<std::uint32_t>& keys) {
  const Step& now = steps_[step % 2];
  for (const std::uint32_t k : keys) pusher_.push_key(k, now.info, now.asks);
}

// In the task, after backward: the rest of the pushes, and the answers.
void ServerOverlap::conclude(std::uint64_t step) {
  push(step, rest_);
  pusher_.end_step();
  std::ranges::fill(furthest_, 0);
  if (steps_[step % 2].asks) inbox_.expect_answers();
  pushed_->notify();
  inbox_.take_answers();
}

template <typename F>
void ServerOverlap::or_release(const F& f) {
  try {
    f();
  } catch (...) {
    failed_ = true;
    release_waiting();
    throw;
  }
}

// What is waited for will not come.
void ServerOverlap::release_waiting() {
  for (auto& key : arrived_) key->notify();
  pushed_->notify();
}

void ServerOverlap::answered(std::uint32_t key) {
  if (!defers_) return;
  arrived_[key]->notify();
  std::size_t& furthest = furthest_[static_cast<std::size_t>(map_.keys[key].server)];
  if (reading_[key] < furthest) out_of_order_ += 1;
  furthest = std::max(furthest, reading_[key]);
}

// Asked by every core of the worker, in a forward pass: waits for the last step's answers about that range.
void ServerOverlap::wait_for(Range range) {
  const std::uint64_t answers = pipeline_.steps() - 1;  // of the present step there are none yet
  const double begin = parts_.world->now();
  for (std::size_t k = 0; k < map_.keys.size(); ++k)
    if (overlaps(map_.keys[k].range, range)) arrived_[k]->wait(answers, no_limit);
  const double waited = (parts_.world->now() - begin) / parts_.team->cores().count();
  std::atomic_ref(waited_).fetch_add(waited);
}

}  // namespace echelon::exchanges
