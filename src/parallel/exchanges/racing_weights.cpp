#include "parallel/exchanges/racing_weights.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "parallel/step/racing.h"

namespace echelon {

namespace {

constexpr std::size_t line = 64;  // a cache line: counters of different groups do not share one
constexpr std::uint64_t busy = ~std::uint64_t{0};
constexpr auto relaxed = std::memory_order_relaxed;

std::size_t padded(std::size_t floats) { return (floats * sizeof(float) + line - 1) / line * line; }

void add_to(float& x, float change, RacingWeights::Add how) {
  const std::atomic_ref<float> shared(x);
  float old = shared.load(relaxed);
  if (how == RacingWeights::Add::racing)
    shared.store(old + change, relaxed);
  else
    while (!shared.compare_exchange_weak(old, old + change, relaxed)) {
    }
}

}  // namespace

static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free);

// A line for the token; for each group a line of counters, its weights, and what it has handed on.
std::size_t RacingWeights::memory_bytes(std::size_t floats, int groups) {
  return line + static_cast<std::size_t>(groups) * (line + 2 * padded(floats));
}

RacingWeights::RacingWeights(std::span<std::byte> memory, std::size_t floats, int groups, Add how, std::uint64_t every)
    : memory_(memory),
      floats_(floats),
      groups_(groups),
      how_(how),
      every_(every),
      beta_(static_cast<float>(token_decay(groups))),
      lambda_(static_cast<float>(1 - std::pow(token_decay(groups), groups - 1))) {
  invariant(groups > 0 && memory.size() >= memory_bytes(floats, groups), "there is room for all groups' weights");
}

std::span<float> RacingWeights::weights(int group) const {
  const std::size_t at =
      line + static_cast<std::size_t>(groups_) * line + 2 * static_cast<std::size_t>(group) * padded(floats_);
  return {reinterpret_cast<float*>(memory_.data() + at), floats_};
}

std::span<float> RacingWeights::handed(int group) const {
  return {weights(group).data() + padded(floats_) / sizeof(float), floats_};
}

std::atomic_ref<std::uint64_t> RacingWeights::counter(std::size_t index) const {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(memory_.data() + index * sizeof(std::uint64_t)));
}

// Counters of a group: its updates, those of them that were there when it handed the token on, and how often it has.
std::atomic_ref<std::uint64_t> RacingWeights::updates_of(int group) const {
  return counter(static_cast<std::size_t>(group + 1) * line / sizeof(std::uint64_t));
}

void RacingWeights::start(int group, std::span<const float> start) {
  std::ranges::copy(start, weights(group).begin());
  std::ranges::copy(start, handed(group).begin());
}

void RacingWeights::read(int group, std::span<float> out) const {
  const std::span<const float> w = weights(group);
  racing_read(w.first(out.size()), out.data());
}

std::uint64_t RacingWeights::updates(int group) const { return updates_of(group).load(relaxed); }

std::uint64_t RacingWeights::add(int group, std::span<const float> change) {
  const std::span<float> w = weights(group);
  for (std::size_t i = 0; i < change.size(); ++i)
    if (change[i] != 0) add_to(w[i], change[i], how_);
  const std::uint64_t before = updates_of(group).fetch_add(1, relaxed);
  if (groups_ > 1) try_to_hand_on(group);
  return before;
}

int RacingWeights::holder() const {
  const std::uint64_t h = counter(0).load(relaxed);
  return h == busy ? -1 : static_cast<int>(h);
}

std::uint64_t RacingWeights::handed_on(int group) const {
  return counter(static_cast<std::size_t>(group + 1) * line / sizeof(std::uint64_t) + 2).load(relaxed);
}

// Whoever of the group comes first does it; the others go on.
void RacingWeights::try_to_hand_on(int group) {
  auto mine = static_cast<std::uint64_t>(group);
  const std::atomic_ref<std::uint64_t> token = counter(0);
  if (token.load(relaxed) != mine) return;
  if (!token.compare_exchange_strong(mine, busy, std::memory_order_acquire, relaxed)) return;
  const std::atomic_ref<std::uint64_t> at_last =
      counter(static_cast<std::size_t>(group + 1) * line / sizeof(std::uint64_t) + 1);
  int next = group;
  if (updates(group) - at_last.load(relaxed) >= every_) {
    next = (group + 1) % groups_;
    at_last.store(updates(group), relaxed);
    hand_on(group, next);
  }
  token.store(static_cast<std::uint64_t>(next), std::memory_order_release);
}

double RacingWeights::hand_on(int from, int to) {
  const std::span<float> holder = weights(from), next = weights(to), kept = handed(from);
  float most = 0;
  for (std::size_t i = 0; i < floats_; ++i) {
    const float now = racing_load(holder[i]), other = racing_load(next[i]), change = now - kept[i];
    const float mixed = lambda_ * other + (1 - lambda_) * now + (beta_ + lambda_ - 1) * change;
    kept[i] = mixed;
    most = std::max(most, std::abs(now - other));
    if (change != 0) add_to(next[i], beta_ * change, how_);
    if (mixed != now) add_to(holder[i], mixed - now, how_);
  }
  counter(static_cast<std::size_t>(from + 1) * line / sizeof(std::uint64_t) + 2).fetch_add(1, relaxed);
  return most;
}

// They come nearer by a factor with every turn, until rounding ends that.
void RacingWeights::drain() {
  int at = holder();
  double differ = 1;
  for (int round = 0; groups_ > 1 && round < 100 && differ > 0; ++round) {
    differ = 0;
    for (int i = 0; i < groups_; ++i, at = (at + 1) % groups_)
      differ = std::max(differ, hand_on(at, (at + 1) % groups_));
  }
  const std::span<const float> last = weights(at);
  for (int g = 0; g < groups_; ++g)
    if (g != at) start(g, last);
  if (groups_ > 1) std::ranges::copy(last, handed(at).begin());
  counter(0).store(static_cast<std::uint64_t>(at), relaxed);
}

double token_decay(int groups) {
  double low = 0.5, high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (std::pow(middle, groups) + middle > 1 ? high : low) = middle;
  }
  return low;
}

}  // namespace echelon
