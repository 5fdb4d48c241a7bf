#include "parallel/team/team.h"

#include <algorithm>
#include <atomic>

#include "base/error.h"
#include "world/channels.h"

namespace echelon {

Team::Team(World& world, Cores& cores, bool apart)
    : world_(world), cores_(cores), waited_(static_cast<std::size_t>(world.size())), for_messages_(waited_.size()) {
  if (world.size() > 1)
    group_ = Group::everyone(world, {.notice = [this](const WaitNotice& notice) { say_late(notice); },
                                     .waited = [this](Rank r, double seconds) { count_wait(r, seconds); }});
  SharedMemory* shared = apart || world.size() == 1 ? nullptr : world.shared_memory();
  if (!shared) return;
  ranks_ = world.size();
  const auto bytes = memory("team arrivals", sizeof(BarrierArrival) * static_cast<std::size_t>(ranks_));
  arrivals_ = {reinterpret_cast<BarrierArrival*>(bytes.data()), static_cast<std::size_t>(ranks_)};
  barrier_ = shared->barrier("team", world.rank(), ranks_);
}

std::span<std::byte> Team::memory(const std::string& name, std::size_t bytes) {
  bytes_ += bytes;
  if (ranks_ > 1) return world_.shared_memory()->get(name, std::max<std::size_t>(bytes, 1)).first(bytes);
  return own_.emplace_back(bytes).as<std::byte>();
}

// By any task of this rank, when the wait is over.
void Team::count_wait(Rank rank, double seconds) {
  for_messages_[static_cast<std::size_t>(rank)] += seconds;
  if (!keeps_waits_) return;
  constexpr std::size_t most = 200'000;  // what a viewer can still show
  const double now = world_.now();
  keeping_.take([&] {
    if (waits_.size() < most) waits_.push_back({rank, now - seconds, now});
  });
}

std::vector<Team::Wait> Team::kept_waits() {
  std::vector<Wait> waits;
  keeping_.take([&] { waits = waits_; });
  return waits;
}

void Team::barrier(int core, const char* what) {
  if (ranks_ == 1) return cores_.barrier();
  if (cores_.count() > 1) cores_.barrier();
  if (core == 0) meet_ranks(what);
  if (cores_.count() > 1) cores_.barrier();
}

void Team::meet_ranks(const char* what) {
  const double begin = world_.now();
  BarrierArrival& mine = arrivals_[static_cast<std::size_t>(world_.rank())];
  const std::size_t slot = ++meetings_ % 2;
  std::atomic_ref(mine.time[slot]).store(begin, std::memory_order_relaxed);
  std::atomic_ref(mine.number).store(meetings_, std::memory_order_release);
  try {
    // Late is what takes much longer than it usually does.
    for (double notice = std::max(2.0, 8 * usual_); !barrier_->wait(begin + std::min(notice, timeout)); notice *= 2) {
      const WaitNotice late = late_notice(what, world_.now() - begin);
      if (world_.now() - begin >= timeout) throw TooLate(late.text);
      say_late(late);
    }
  } catch (const PeerLost& lost) {
    throw PeerLost(lost.rank(), lost.reason(), what, lost.kind());
  }
  std::size_t last = static_cast<std::size_t>(world_.rank());
  double latest = begin;
  for (std::size_t r = 0; r < arrivals_.size(); ++r)
    if (const double time = std::atomic_ref(arrivals_[r].time[slot]).load(std::memory_order_relaxed); time > latest)
      latest = time, last = r;
  const double took = world_.now() - begin;
  if (static_cast<Rank>(last) != world_.rank()) waited_[last] += took;  // else it was the others who waited
  usual_ = std::max(took, 0.9 * usual_);
}

// The driving thread and the exchange task may both be waiting, most often for the same rank: one of them says so.
void Team::say_late(const WaitNotice& notice) {
  if (on_late) saying_.take_if_free([&] { on_late(notice); });
}

void Team::say(const std::string& text) {
  if (on_late) saying_.take([&] { on_late({.waited_for = {}, .text = text}); });
}

void Team::all_gather(std::span<std::byte> all, std::span<const std::size_t> counts, std::size_t unit) {
  if (!group_) return;
  parts_.clear();
  std::size_t at = 0;
  for (const std::size_t count : counts) {
    parts_.push_back({at, at + count * unit});
    at += count * unit;
  }
  echelon::all_gather(*group_, typed_span(all), parts_);
}

void Team::broadcast(std::span<std::byte> bytes) {
  if (group_) echelon::broadcast(*group_, typed_span(bytes), 0);
}

double Team::clock_offset() {
  auto finish = [](Work work, Rank peer, double limit) {
    if (!work.wait(limit)) throw TooLate(fmt::format("rank {} does not answer when asked for its time", peer));
  };
  const std::vector<int>& host = world_.place().host;
  double offset = 0;
  for (Rank r = 1; r < world_.size(); ++r) {
    if (host[static_cast<std::size_t>(r)] == host[0] || (world_.rank() != 0 && world_.rank() != r)) continue;
    constexpr Channel channel = clock_channel;
    double best = 1e9;
    for (int i = 0; i < 10; ++i) {  // the quickest answer is the one that says most
      const double sent = world_.now(), limit = sent + timeout;
      double theirs = sent;
      if (world_.rank() == r) {
        finish(world_.send(0, channel, {}, std::as_bytes(std::span(&sent, 1))), 0, limit);
        finish(world_.receive(0, channel, {}, std::as_writable_bytes(std::span(&theirs, 1))), 0, limit);
        const double took = world_.now() - sent;
        if (took < best) best = took, offset = theirs - (sent + took / 2);
      } else {
        finish(world_.receive(r, channel, {}, std::as_writable_bytes(std::span(&theirs, 1))), r, limit);
        theirs = world_.now();
        finish(world_.send(r, channel, {}, std::as_bytes(std::span(&theirs, 1))), r, limit);
      }
    }
  }
  return offset;
}

WaitNotice Team::late_notice(const char* what, double waited) {
  WaitNotice notice;
  std::string who, state;
  for (std::size_t r = 0; r < arrivals_.size(); ++r) {
    if (std::atomic_ref(arrivals_[r].number).load(std::memory_order_acquire) >= meetings_) continue;
    who += fmt::format("{}rank {}", who.empty() ? "" : " and ", r);
    state += fmt::format("; rank {} is in {}", r, to_text(world_.status_of(static_cast<Rank>(r))));
    notice.waited_for.push_back(static_cast<Rank>(r));
  }
  notice.text = fmt::format("waiting {:.1f} s for {}: {}{}", waited, who, what, state);
  return notice;
}

}  // namespace echelon
