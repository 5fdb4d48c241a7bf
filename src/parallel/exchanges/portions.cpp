#include "parallel/exchanges/portions.h"

#include <algorithm>
#include <limits>

namespace echelon::exchanges {

namespace {
constexpr double forever = std::numeric_limits<double>::infinity();  // the collectives inside have their own patience
constexpr std::size_t most_portions = 48;                            // a lane takes 64 orders
}  // namespace

Portions::Portions(const ExchangeParts& parts, WorkerSide& worker, Sum sum)
    : parts_(parts),
      worker_(worker),
      add_up_(std::move(sum)),
      sum_(parts.floats() * sizeof(float)),
      lane_(parts.crew->group()) {
  overlaps_ = parts.order.is_early();
  if (!overlaps_) {
    add({0, parts.floats()});
    return;
  }
  std::size_t bytes = std::max<std::size_t>(1, parts.order.bytes);
  const auto is_ready = [this](const Bucket& bucket) {
    for (auto& p : portions_)
      if (p->range.begin == bucket.begin) p->ready->notify();
  };
  for (parts.trainer->send_buckets(bytes, is_ready); parts.trainer->buckets().size() > most_portions; bytes *= 2)
    parts.trainer->send_buckets(bytes, is_ready);
  for (const Bucket& b : parts.trainer->buckets()) add({b.begin, b.end});
}

Portions::~Portions() {
  closing_ = true;
  for (auto& p : portions_) p->ready->notify();
}

void Portions::add(Range range) {
  auto p = std::make_unique<Portion>();
  p->range = range;
  if (!parts_.rule->traits().answers_mean) p->shared = parts_.rule->make_shared(parts_.place(range));
  p->ready = parts_.world->make_event();
  portions_.push_back(std::move(p));
}

void Portions::begin_step() {
  if (overlaps_) start();
}

// The lane has all portions in order, and waits for each until it is there.
void Portions::start() {
  for (std::size_t i = 0; i < portions_.size(); ++i) {
    Portion& p = *portions_[i];
    ++p.times;
    p.pending = lane_.start([this, i](Group& group) {
      Portion& portion = *portions_[i];
      portion.ready->wait(portion.times, forever);
      if (closing_) return;
      add_up_(group, i, numbers_of(portion));
    });
  }
  ++rounds_;
}

void Portions::conclude(const StepMoment& moment) {
  if (!overlaps_) {
    start();
    portions_.front()->ready->notify();
  }
  for (auto& p : portions_) {
    p->pending.wait(forever);
    const std::span<float> mean = numbers_of(*p);
    if (p->shared) p->shared->conclude(mean, moment.lr);
    worker_.apply(p->range, p->shared ? p->shared->answer() : mean);
  }
}

void Portions::read_model(std::span<float> out) const {
  for (const auto& p : portions_)
    if (p->shared) std::ranges::copy(p->shared->model(), out.begin() + static_cast<std::ptrdiff_t>(p->range.begin));
}

std::vector<StateSpan> Portions::state() {
  std::vector<StateSpan> all;
  for (std::size_t i = 0; i < portions_.size(); ++i)
    if (portions_[i]->shared) add_states(all, fmt::format("shared {} ", i), portions_[i]->shared->state());
  all.push_back(as_state("rounds", rounds_));
  return all;
}

}  // namespace echelon::exchanges
