#include "collective/wait_policy.h"

#include <algorithm>

#include "base/error.h"
#include "world/wrappers/sub_world.h"

namespace echelon {

namespace {

std::size_t index_of(OperationKind kind) { return static_cast<std::size_t>(kind) % 16; }

}  // namespace

WaitPolicy::WaitPolicy(World& world, WaitOptions options) : world_(world), options_(std::move(options)) {
  // Room for all from the start, unless there are so many that a rank never talks to most of them.
  for (Rank r = 0; r < world.size() && world.size() <= 256; ++r) waited_[r] = 0;
}

void WaitPolicy::begin(const Label& label, std::string_view name, NameOf name_of) {
  label_ = label;
  name_ = name;
  name_of_ = name_of;
  began_ = seen_ = world_.now();
}

// Follows what gets slower at once and what gets faster gradually.
void WaitPolicy::end() {
  const double took = seen_ - began_;
  double& usual = usual_[index_of(label_.kind)];
  usual = std::max(took, 0.9 * usual + 0.1 * took);
}

double WaitPolicy::late_after(OperationKind kind) const {
  return std::max(options_.floor, options_.factor * usual_[index_of(kind)]);
}

std::string WaitPolicy::text(double seconds, Rank peer) const {
  const std::string what = name_.empty() ? fmt::format("{} {}", to_string(label_.kind), label_.number)
                                         : fmt::format("{} {}", to_string(label_.kind), name_);
  if (peer < 0) return fmt::format("waiting {:.1f} s for the other ranks: {}", seconds, what);
  RankStatus status = world_.status_of(peer);
  if (status.waiting_for >= 0) status.waiting_for = rank_in_job(world_, status.waiting_for);
  const Rank name = rank_in_job(world_, peer);
  const std::string does = status == RankStatus{} ? "" : fmt::format("; rank {} is in {}", name, to_text(status));
  if (name_of_ == NameOf::peer) return fmt::format("waiting {:.1f} s for {}{}", seconds, name_, does);
  return fmt::format("waiting {:.1f} s for rank {}: {}{}", seconds, name, what, does);
}

// The rank that is waited for may itself wait for another: the one at the end of the chain is to blame.
Rank WaitPolicy::last_in_chain(Rank peer) const {
  for (int hops = 0; peer >= 0 && hops < world_.size(); ++hops) {
    const Rank next = world_.status_of(peer).waiting_for;
    if (next < 0) break;
    peer = next;
  }
  return peer;
}

template <typename Try, typename Who>
void WaitPolicy::keep_trying(const Try& try_until, const Who& who) {
  constexpr double doubt_every = 0.1;
  const double start = world_.now(), abort = start + options_.limit;
  double now = start, late = late_after(label_.kind), next = start + late / 2;
  Rank awaited = -1;
  bool published = false;  // for whom this rank waits
  while (!try_until(std::min({abort, next, now + (doubt_ ? doubt_every : options_.limit)}))) {
    now = world_.now();
    if (doubt_) doubt_();
    if (now < std::min(abort, next)) continue;
    next = std::max(next, start + late);  // if that was half-way to being late, time to say so to those who wait for us
    if (const Rank peer = who(); peer >= 0) {
      world_.set_waiting_for(peer);
      published = true;
    }
    if (now < std::min(abort, start + late)) continue;
    awaited = last_in_chain(who());
    const std::string report = text(now - start, awaited);
    if (now >= abort)
      throw TooLate(fmt::format("rank {} aborts: {}; the limit is {:.0f} s", rank_in_job(world_, world_.rank()), report,
                                options_.limit));
    if (options_.notice)
      options_.notice({.waited_for = awaited < 0 ? std::vector<Rank>() : std::vector{awaited}, .text = report});
    late *= 2;
    next = start + late;
  }
  if (published) world_.set_waiting_for(-1);
  seen_ = world_.now();
  if (const Rank peer = awaited >= 0 ? awaited : who(); peer >= 0) {
    waited_[peer] += seen_ - start;
    if (options_.waited) options_.waited(peer, seen_ - start);
  }
}

void WaitPolicy::wait(Work& work, Rank peer) {
  if (work.done()) return;
  keep_trying([&](double deadline) { return work.wait(deadline); }, [&] { return peer; });
}

void WaitPolicy::wait(SharedBarrier& barrier, const std::function<Rank()>& latecomer) {
  // Looking at the clock and at the others takes longer than a meeting of those who are all there.
  constexpr double moment = 20e-6;
  if (barrier.wait(seen_ + moment)) return;
  Rank missing = latecomer();  // whoever was seen missing last gets the blame: at the end all are there
  keep_trying([&](double deadline) { return barrier.wait(deadline); },
              [&] {
                if (const Rank now = latecomer(); now >= 0) missing = now;
                return missing;
              });
}

}  // namespace echelon
