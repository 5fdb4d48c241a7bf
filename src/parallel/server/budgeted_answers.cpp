#include "parallel/server/budgeted_answers.h"

#include <algorithm>
#include <cmath>

namespace echelon::exchanges {

namespace {

double model_bytes(const ShardCore& core) {
  double bytes = 0;
  for (const ShardKey& key : core.keys) bytes += static_cast<double>(key.range.count() * sizeof(float));
  return bytes * static_cast<double>(core.writers.size());
}

}  // namespace

BudgetedAnswers::BudgetedAnswers(ShardCore& core)
    : core_(core), room_(core.parts.order.rate * core.bandwidth, model_bytes(core)) {
  const auto workers = static_cast<std::size_t>(core.parts.workers());
  std::size_t largest = 0;
  for (const ShardKey& key : core.keys) {
    changes_.push_back({.sent_moved = std::vector<double>(workers), .sent_clock = std::vector<std::int64_t>(workers)});
    largest = std::max(largest, key.range.count());
  }
  before_ = Buffer(largest * sizeof(float));
}

double BudgetedAnswers::bytes_of(const ShardKey& key) const {
  return static_cast<double>(key.range.count() * sizeof(float) + Mailbox::header_bytes);
}

void BudgetedAnswers::before_update(const ShardKey& key) {
  std::ranges::copy(key.shared->model(), before_.as<float>().begin());
}

void BudgetedAnswers::after_update(const ShardKey& key) {
  const std::span<const float> now = key.shared->model(), before = before_.as<float>();
  double moved = 0, size = 1e-12;
  for (std::size_t i = 0; i < now.size(); ++i) moved += std::abs(now[i] - before[i]), size += std::abs(now[i]);
  change(key).moved += moved / size;
}

void BudgetedAnswers::for_each_that_goes(const std::function<void(ShardKey&, Rank)>& send) {
  room_.advance(core_.parts.world->now());
  candidates_.clear();
  for (ShardKey& key : core_.keys) {
    const KeyChange& c = change(key);
    const std::int64_t clock = core_.oldest(key);
    for (const Rank to : core_.writers.present()) {
      const auto w = static_cast<std::size_t>(to);
      if (clock > c.sent_clock[w])
        candidates_.push_back({c.moved - c.sent_moved[w], &key, to});  // the slowest has stepped
    }
  }
  std::ranges::stable_sort(candidates_, std::greater<>(), &Candidate::significance);
  for (const Candidate& c : candidates_) {
    const bool travels = c.to != core_.parts.rank();
    if (travels && room_.bytes() < bytes_of(*c.key)) continue;
    if (travels) room_.spend(bytes_of(*c.key));
    send(*c.key, c.to);
  }
}

std::vector<StateSpan> BudgetedAnswers::state() {
  std::vector<StateSpan> all{as_state("room for answers", room_.bytes())};
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    const std::uint32_t key = core_.keys[i].number;
    all.push_back(as_state(fmt::format("moved {}", key), changes_[i].moved));
    all.push_back(as_state(fmt::format("moved when sent {}", key), changes_[i].sent_moved));
    all.push_back(as_state(fmt::format("clock when sent {}", key), changes_[i].sent_clock));
  }
  return all;
}

void BudgetedAnswers::sent(const ShardKey& key, Rank to) {
  KeyChange& c = change(key);
  c.sent_moved[static_cast<std::size_t>(to)] = c.moved;
  c.sent_clock[static_cast<std::size_t>(to)] = core_.oldest(key);
}

}  // namespace echelon::exchanges
