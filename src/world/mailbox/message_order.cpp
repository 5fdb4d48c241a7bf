#include "world/mailbox/message_order.h"

#include <algorithm>

#include "base/error.h"

namespace echelon {

namespace {

// How many events there are, and how often a task has looked in vain since the last: read and written as one.
constexpr std::uint64_t tally(std::uint64_t events, std::uint32_t misses) { return events << 32 | misses; }
constexpr std::uint64_t events_of(std::uint64_t tally) { return tally >> 32; }
constexpr auto misses_of(std::uint64_t tally) { return static_cast<std::uint32_t>(tally); }

}  // namespace

struct MessageOrder::Channel {
  std::atomic<std::uint64_t> tally;
  Event events[most_events];
};

struct MessageOrder::Mark {
  std::atomic<std::uint64_t> number, who;
  std::uint64_t tally[channels];
};

struct MessageOrder::Shared {
  Mark marks[2];  // of the states with even and odd numbers
  Channel channels[MessageOrder::channels];
};

std::size_t MessageOrder::bytes() { return (sizeof(Shared) + 4095) / 4096 * 4096; }

MessageOrder::MessageOrder(std::span<std::byte> memory, std::uint64_t who)
    : shared_(*reinterpret_cast<Shared*>(memory.data())), who_(who) {
  invariant(memory.size() >= sizeof(Shared), "the notes about messages have room");
  forget();
}

void MessageOrder::forget() {
  noted_ = 0;
  abandoned_ = false;
  for (int c = 0; c < channels; ++c) {
    const std::uint64_t now = shared_.channels[c].tally;
    Place& p = places_[static_cast<std::size_t>(c)];
    p.at = p.end = events_of(now);
    p.misses = p.end_misses = misses_of(now);
    marked_[c] = events_of(now);
  }
}

void MessageOrder::mark(std::uint64_t number) {
  Mark& m = shared_.marks[number % 2];
  m.number.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  for (int c = 0; c < channels; ++c) {
    settle(c);
    const Place& p = places_[static_cast<std::size_t>(c)];
    m.tally[c] = tally(p.at, p.misses);
    marked_[c] = p.at.load();
  }
  m.who.store(who_, std::memory_order_relaxed);
  m.number.store(number, std::memory_order_release);
}

bool MessageOrder::rewind(std::uint64_t number) {
  forget();
  const Mark& m = shared_.marks[number % 2];
  if (number == 0 || m.number.load(std::memory_order_acquire) != number || m.who != who_) return false;
  for (int c = 0; c < channels; ++c)
    if (events_of(shared_.channels[c].tally) - events_of(m.tally[c]) > most_events) return false;
  for (int c = 0; c < channels; ++c) {
    Place& p = places_[static_cast<std::size_t>(c)];
    p.at = events_of(m.tally[c]), p.misses = misses_of(m.tally[c]);
    marked_[c] = p.at.load();
    noted_ += p.end - p.at;
  }
  return true;
}

bool MessageOrder::repeats() const {
  return !abandoned_ && std::ranges::any_of(places_, [](const Place& p) { return p.at < p.end; });
}

std::uint64_t MessageOrder::noted() const { return noted_; }

bool MessageOrder::is_nearly_full() const {
  for (int c = 0; c < channels; ++c)
    if (places_[static_cast<std::size_t>(c)].at - marked_[c] > most_events / 2) return true;
  return false;
}

// After the order was abandoned: what was noted and not repeated is no more.
void MessageOrder::settle(int channel) {
  Place& p = places_[static_cast<std::size_t>(channel)];
  if (!abandoned_ || (p.at == p.end && p.misses >= p.end_misses)) return;
  p.end = p.at.load(), p.end_misses = p.misses.load();
  shared_.channels[channel].tally = tally(p.at, p.misses);
}

MessageOrder::Next MessageOrder::next(int channel, Event& event, bool looks) {
  settle(channel);
  Place& p = places_[static_cast<std::size_t>(channel)];
  const bool more = p.at < p.end;
  if (more) event = shared_.channels[channel].events[p.at % most_events];
  if (looks && p.misses < (more ? event.misses : p.end_misses.load())) {
    ++p.misses;
    return Next::nothing;
  }
  return more ? Next::this_one : Next::anything;
}

void MessageOrder::took(int channel, const Event& event) {
  Place& p = places_[static_cast<std::size_t>(channel)];
  Channel& c = shared_.channels[channel];
  if (p.at < p.end) {  // noted already
    ++p.at, p.misses = 0;
    return;
  }
  Event& noted = c.events[p.at % most_events];
  noted = event;
  noted.misses = p.misses;
  ++p.at, ++p.end;
  p.misses = p.end_misses = 0;
  c.tally.store(tally(p.at, 0), std::memory_order_release);
}

void MessageOrder::missed(int channel) {
  Place& p = places_[static_cast<std::size_t>(channel)];
  ++p.misses, ++p.end_misses;
  shared_.channels[channel].tally.store(tally(p.at, p.misses), std::memory_order_release);
}

std::uint32_t MessageOrder::learn(int channel, std::uint32_t now) {
  Event event;
  switch (next(channel, event, true)) {
    case Next::nothing: return 0;
    case Next::this_one: took(channel, event); return event.key;
    case Next::anything: break;
  }
  if (now == 0)
    missed(channel);
  else
    took(channel, {.key = now});
  return now;
}

}  // namespace echelon
