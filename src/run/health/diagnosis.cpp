#include "run/health/diagnosis.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "world/os/host.h"

namespace echelon {

namespace {

constexpr double patience = 2;             // seconds without a step before a rank counts as stuck
constexpr double usual_steps = 8;          // as many times a step's usual time, too
constexpr double first_steps = 20;         // seconds more, for the first ones
constexpr double long_save = 3;            // seconds
constexpr double much = 0.4;               // of the time
constexpr double much_slower = 1.6;        // times the others
constexpr double for_another_core = 0.35;  // waited for a core, of the time

struct Window {  // of one rank between the two looks
  double input, compute, exchange, waiting, waited_for_core;
  std::int64_t steps;
};

Window window(const RankLook& a, const RankLook& b, double seconds) {
  const RingTimes &x = a.ring.times, &y = b.ring.times;
  return {.input = (y.input - x.input) / seconds,
          .compute = (y.compute - x.compute) / seconds,
          .exchange = (y.exchange - x.exchange) / seconds,
          .waiting = (y.waiting - x.waiting) / seconds,
          .waited_for_core = (b.process.waited_for_core - a.process.waited_for_core) / seconds,
          .steps = static_cast<std::int64_t>(b.ring.batches - a.ring.batches)};
}

// Workers at their own pace do not say where their time went.
bool knows_times(const Window& w) { return w.compute + w.exchange + w.waiting > 0; }

bool is_exchange(const std::string& activity) { return activity.find("exchange") != std::string::npos; }

Diagnosis found(Cause cause, const RankLook& look, std::string details) {
  return {.cause = cause,
          .rank = look.ring.rank,
          .host = look.ring.host,
          .operation = last_words(look.ring),
          .details = std::move(details)};
}

const RankLook* of_rank(std::span<const RankLook> all, int rank) {
  const auto at = std::ranges::find_if(all, [&](const RankLook& l) { return l.ring.rank == rank; });
  return at == all.end() ? nullptr : &*at;
}

// The ranks that wait for each other in a circle; none if there is no circle.
std::vector<int> circle(std::span<const RankLook> all) {
  for (const RankLook& start : all) {
    std::vector<int> path;
    const RankLook* at = &start;
    while (at && at->ring.waiting_for >= 0 && path.size() <= all.size()) {
      path.push_back(at->ring.rank);
      if (at->ring.waiting_for == start.ring.rank) return path;
      at = of_rank(all, at->ring.waiting_for);
    }
  }
  return {};
}

// Of a rank that nobody waits in vain for by itself: the one that keeps the others waiting.
Diagnosis why_stuck(const RankLook& look, const Window& w, double for_seconds) {
  const std::string since = fmt::format("no step for {:.1f} s", for_seconds);
  if (look.ring.activity == EventRing::reading) return found(Cause::input_bound, look, since);
  if (look.ring.saving_since > 0 || look.process.state == 'D') return found(Cause::slow_disk, look, since);
  if (w.waited_for_core > for_another_core)
    return found(Cause::other_program, look,
                 fmt::format("{}; others had its core {:.0f} % of the time", since, 100 * w.waited_for_core));
  if (is_exchange(look.ring.activity)) return found(Cause::slow_link, look, since);
  return found(Cause::slow, look, since);
}

}  // namespace

std::string_view to_string(Cause cause) {
  switch (cause) {
    case Cause::none: return "nothing";
    case Cause::died: return "died";
    case Cause::stopped: return "stopped";
    case Cause::deadlock: return "deadlock";
    case Cause::slow_disk: return "slow disk";
    case Cause::input_bound: return "input-bound";
    case Cause::slow_link: return "slow link";
    case Cause::other_program: return "other program";
    case Cause::slow: return "slow";
  }
  return "unknown";
}

std::string Diagnosis::text() const {
  if (cause == Cause::none) return "nothing is wrong";
  return fmt::format("rank {}{}: {}{}; {}", rank, host.empty() ? "" : " of " + host, to_string(cause),
                     details.empty() ? "" : " (" + details + ")", operation);
}

std::string last_words(const RingView& ring) {
  std::string text = ring.activity.empty() ? "it" : "in " + ring.activity;
  if (ring.activity.empty()) text = "at its start";
  text += fmt::format(", step {}", ring.step + 1);
  for (auto e = ring.events.rbegin(); e != ring.events.rend(); ++e)
    if (e->peer >= 0) {
      text += fmt::format(", last with rank {} ({})", e->peer, e->what);
      break;
    }
  return text;
}

Diagnosis diagnose(std::span<const RankLook> before, std::span<const RankLook> all, double seconds, double now) {
  for (const RankLook& l : all)
    if (l.here && l.ring.ended.empty() && (!l.process.exists || l.process.began != l.ring.process_began))
      return found(Cause::died, l, fmt::format("its process {} is gone", l.ring.process));
  for (const RankLook& l : all)
    if (l.here && (l.process.state == 'T' || l.process.state == 't') && l.ring.ended.empty())
      return found(Cause::stopped, l, fmt::format("its process {} was stopped", l.ring.process));
  if (before.size() != all.size() || seconds <= 0) return {};
  for (const RankLook& l : all)
    if (l.ring.ended.empty() && l.ring.saving_since > 0 && now - l.ring.saving_since > long_save)
      return found(Cause::slow_disk, l,
                   fmt::format("a checkpoint is being written for {:.1f} s", now - l.ring.saving_since));

  std::vector<Window> windows;
  for (std::size_t i = 0; i < all.size(); ++i) windows.push_back(window(before[i], all[i], seconds));
  const auto live = [](const RankLook& l) { return l.ring.ended.empty(); };
  double stepped = 0, usual = 0;
  for (const RankLook& l : all) {
    stepped = std::max(stepped, l.ring.stepped);
    if (l.ring.batches > 2)
      usual = std::max(usual, (l.ring.stepped - l.ring.began) / static_cast<double>(l.ring.batches));
  }
  const bool calm = std::ranges::any_of(all, [](const RankLook& l) {
    return std::ranges::find(calm_activities, l.ring.activity) != calm_activities.end();
  });
  if (calm) return {};
  const double stuck_for = now - stepped - (usual > 0 ? 0 : first_steps);
  if (stuck_for > std::max(patience, usual_steps * usual) && std::ranges::all_of(all, live)) {
    if (const std::vector<int> ring = circle(all); !ring.empty()) {
      std::string who;
      for (const int r : ring) who += fmt::format("rank {} waits for ", r);
      return found(Cause::deadlock, *of_rank(all, ring.front()), fmt::format("{}rank {}", who, ring.front()));
    }
    // Whoever is not at exchanging keeps the others; if all are, the link does.
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i].ring.waiting_for < 0 && !is_exchange(all[i].ring.activity))
        return why_stuck(all[i], windows[i], stuck_for);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i].ring.waiting_for < 0 || i + 1 == all.size()) return why_stuck(all[i], windows[i], stuck_for);
  }
  for (std::size_t i = 0; i < all.size(); ++i)
    if (live(all[i]) && (windows[i].input > much ||
                         (all[i].ring.activity == EventRing::reading && now - all[i].ring.since > patience / 2)))
      return found(Cause::input_bound, all[i],
                   fmt::format("{:.0f} % of its time it waits for its samples", 100 * windows[i].input));
  // A rank that keeps the others: it computes for much longer than they do.
  double least = 1e9;
  std::size_t most = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!knows_times(windows[i])) continue;
    least = std::min(least, windows[i].compute);
    if (windows[i].compute > windows[most].compute) most = i;
  }
  const Window& w = windows[most];
  if (all.size() > 1 && w.steps > 0 && w.compute > much && w.compute > much_slower * least) {
    const std::string details =
        fmt::format("computes {:.1f} times as long as the others", w.compute / std::max(least, 0.01));
    if (w.waited_for_core > for_another_core)
      return found(Cause::other_program, all[most],
                   fmt::format("{}; others had its core {:.0f} % of the time", details, 100 * w.waited_for_core));
    return found(Cause::slow, all[most], details);
  }
  double exchange = 0;
  const auto known = static_cast<double>(std::ranges::count_if(windows, knows_times));
  for (const Window& v : windows) exchange += known > 0 ? (v.exchange + v.waiting) / known : 0;
  if (all.size() == 1 || exchange <= 1.5 * much) return {};
  // Whoever has no core makes the others wait as a slow link does.
  const auto waits = std::ranges::max_element(windows, {}, &Window::waited_for_core);
  if (waits->waited_for_core > for_another_core)
    return found(Cause::other_program, all[static_cast<std::size_t>(waits - windows.begin())],
                 fmt::format("others had its core {:.0f} % of the time", 100 * waits->waited_for_core));
  return found(Cause::slow_link, all.front(), fmt::format("{:.0f} % of the time goes into exchanging", 100 * exchange));
}

std::string ring_path(const std::string& run_folder, int rank) {
  return fmt::format("{}/logs/rank_{}.ring", run_folder, rank);
}

std::string incidents_path(const std::string& run_folder) { return run_folder + "/incidents.jsonl"; }

std::vector<RankLook> look_at_ranks(const std::string& run_folder) {
  std::vector<RankLook> all;
  const std::string here = host_name();
  for (RingView& ring : EventRing::read_all(run_folder + "/logs")) {
    RankLook look{.ring = std::move(ring), .process = {}};
    look.here = look.ring.host == here;
    if (look.here) look.process = look_at_process(look.ring.process);
    all.push_back(std::move(look));
  }
  return all;
}

}  // namespace echelon
