// Exchange beside computation, for servers in rounds. With order `fusion`, `priority` or `enforced` a key is pushed as
// soon as its gradient is complete, while backward still runs (wait-free backward, Poseidon). With the latter two the
// worker also goes on when all is pushed, and waits for a key's answer only when the next forward pass reads its
// parameters (P3, TicTac).
//
// Answers are taken only after backward, because that still reads the weights which they replace. Only where a worker
// has one core: then all of this happens in its own thread.

#include <algorithm>

#include "parallel/exchanges/server_client.h"

namespace echelon::exchanges {

namespace {
bool overlap(Range a, Range b) { return a.begin < b.end && b.begin < a.end; }
}  // namespace

void ServerClient::plan_overlap() {
  const Order::Kind order = parts_.order.kind;
  overlaps_ = gradients() && parts_.sync.kind == Sync::Kind::bsp && parts_.members.empty() &&
              parts_.crew->cores().count() == 1 && settings_.replicas == 1 &&
              (order == Order::Kind::priority || order == Order::Kind::enforced || order == Order::Kind::fusion);
  if (!overlaps_) return;
  missing_.assign(keys_.size(), 0);
  parts_.trainer->send_buckets(order == Order::Kind::fusion ? parts_.order.bytes : 1,
                               [this](const Bucket& b) { bucket_is_ready(b); });
  for (const Bucket& b : parts_.trainer->buckets()) {
    keys_of_bucket_.emplace_back();
    for (std::uint32_t k = 0; k < keys_.size(); ++k)
      if (overlap(keys_[k].range, {b.begin, b.end})) keys_of_bucket_.back().push_back(k);
  }
  defers_ = (order == Order::Kind::priority || order == Order::Kind::enforced) && !parts_.rule->traits().local_step;
  arrived_.assign(keys_.size(), 1);
  if (order == Order::Kind::priority) parts_.mail->leave_by_key(parts_.order.bytes);
  if (!defers_) return;
  const std::vector<std::size_t> in_order = answering_order(0, keys_.size());
  reading_.resize(keys_.size());
  for (std::size_t i = 0; i < in_order.size(); ++i) reading_[in_order[i]] = i + 1;
  furthest_.assign(static_cast<std::size_t>(parts_.workers()), 0);
  parts_.trainer->before_reading([this](Range range) { wait_for_range(range); });
}

void ServerClient::bucket_is_ready(const Bucket& bucket) {
  const auto& buckets = parts_.trainer->buckets();
  const auto found = std::ranges::find(buckets, bucket.begin, &Bucket::begin);
  for (const std::uint32_t k : keys_of_bucket_[static_cast<std::size_t>(found - buckets.begin())]) {
    if (--missing_[k] > 0) continue;
    if (defers_) wait_for_answers();  // of parameters that forward did not read
    push_key(k, moment_, true);
    missing_[k] = -1;  // pushed
  }
}

void ServerClient::note_arrival(std::uint32_t k) {
  arrived_[k] = 1;
  std::size_t& furthest = furthest_[static_cast<std::size_t>(keys_[k].server)];
  if (reading_[k] < furthest) out_of_order_ += 1;
  furthest = std::max(furthest, reading_[k]);
}

void ServerClient::wait_for_range(Range range) {
  if (awaited_ == 0) return;
  const double begin = parts_.world->now();
  for (std::size_t k = 0; k < keys_.size(); ++k)
    if (overlap(keys_[k].range, range))
      while (!arrived_[k]) take_next();
  waited_ += parts_.world->now() - begin;
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
