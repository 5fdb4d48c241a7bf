#include "cli/runs/run_status.h"

#include <fmt/chrono.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "track/run.h"
#include "world/os/clock.h"
#include "world/os/folder_disk.h"
#include "world/os/tasks.h"

namespace echelon::cli {

namespace {

using Ordered = nlohmann::ordered_json;

constexpr double between_status_looks = 0.6;  // seconds
constexpr std::size_t events_shown = 12;

bool lives(const RankLook& l) {
  return l.here && l.process.exists && l.process.began == l.ring.process_began && l.ring.ended.empty();
}

std::string state_of(const RankLook& l) {
  if (!l.ring.ended.empty()) return "ended";
  if (!l.here) return "elsewhere";
  if (!lives(l)) return "gone";
  return l.process.state == 'T' || l.process.state == 't' ? "stopped" : "running";
}

std::string does(const RankLook& l, double now) {
  if (!l.ring.ended.empty()) return "ended: " + l.ring.ended;
  std::string text = l.ring.activity.empty() ? "no activity said" : l.ring.activity;
  text += fmt::format(" for {:.1f} s", std::max(0.0, now - l.ring.since));
  if (l.ring.waiting_for >= 0) text += fmt::format(", waits for rank {}", l.ring.waiting_for);
  if (l.ring.saving_since > 0) text += fmt::format(", writes a checkpoint for {:.1f} s", now - l.ring.saving_since);
  return text;
}

Ordered to_json(const RankLook& l, double now) {
  return {{"rank", l.ring.rank}, {"host", l.ring.host},  {"process", l.ring.process},      {"state", state_of(l)},
          {"step", l.ring.step}, {"does", does(l, now)}, {"waits_for", l.ring.waiting_for}};
}

Ordered to_json(const Diagnosis& d) {
  return {{"cause", to_string(d.cause)}, {"rank", d.rank},       {"host", d.host},
          {"operation", d.operation},    {"details", d.details}, {"text", d.text()}};
}

std::string time_text(double unix_seconds) {
  return fmt::format("{:%H:%M:%S}.{:03}", fmt::gmtime(static_cast<std::time_t>(unix_seconds)),
                     static_cast<int>((unix_seconds - std::floor(unix_seconds)) * 1000));
}

// Lines of incidents.jsonl that can be read.
std::vector<Json> incidents_of(Disk& disk, const RunFolder& folder) {
  std::vector<Json> all;
  if (!disk.exists(incidents_path(folder.path))) return all;
  const std::string text = read_text(disk, incidents_path(folder.path), std::uint64_t{16} << 20);
  for (const std::string_view line : split(text, '\n')) try {
      if (line.empty()) continue;
      Json json = parse_json(line, "incidents.jsonl", {.depth = 2, .values = 32});
      if (json.at("rank").is_number() && json.at("cause").is_string() && json.at("time").is_number())
        all.push_back(std::move(json));
    } catch (const std::exception&) {  // a line that was cut off, or is none
    }
  return all;
}

std::string incident_text(const Json& i) {
  return fmt::format("{}  rank {}: {} ({}) {}; {}", time_text(i.at("time").get<double>()), i.at("rank").get<int>(),
                     i.at("cause").get<std::string>(), i.value("details", ""), i.value("operation", ""),
                     i.value("done", ""));
}

// Why the run's ranks have ended, if one failed: RunCluster writes it.
Json failure_of(Disk& disk, const RunFolder& folder) try {
  const Json cluster = parse_json(read_text(disk, folder.cluster()), folder.cluster());
  return cluster.contains("failed") ? cluster.at("failed") : Json();
} catch (const std::exception&) {
  return {};
}

}  // namespace

void show_status(const std::string& folder, bool json) {
  const auto clock = make_real_clock();
  std::vector<RankLook> before = look_at_ranks(folder), looks = before;
  if (before.empty()) bad_input("{}: no worker of this run has recorded anything", folder);
  double seconds = 0;
  if (std::ranges::any_of(before, lives)) {
    const double began = clock->seconds();
    sleep_really(between_status_looks);
    looks = look_at_ranks(folder);
    seconds = clock->seconds() - began;
  }
  const double now = clock->unix_seconds();
  const Diagnosis found = diagnose(before, looks, seconds, now);
  const bool ended = std::ranges::none_of(looks, lives);
  if (json) {
    Ordered ranks = Ordered::array();
    for (const RankLook& l : looks) ranks.push_back(to_json(l, now));
    return fmt::print("{}\n",
                      Ordered{{"run", folder}, {"running", !ended}, {"ranks", ranks}, {"wrong", to_json(found)}}.dump(
                          -1, ' ', false, Ordered::error_handler_t::replace));
  }
  fmt::print("{}: {}\n", folder, ended ? "nobody trains in it now" : "training");
  for (const RankLook& l : looks)
    fmt::print("  rank {:<3} {:<16} process {:<8} {:<9} step {:<7} {}\n", l.ring.rank, l.ring.host, l.ring.process,
               state_of(l), l.ring.step, does(l, now));
  fmt::print("{}\n", found.text());
}

void show_autopsy(const std::string& folder, bool json) {
  const auto disk = make_real_disk();
  const RunFolder run{folder};
  const std::vector<RankLook> looks = look_at_ranks(folder);
  const std::vector<Json> incidents = incidents_of(*disk, run);
  const Json failure = failure_of(*disk, run);
  const double now = make_real_clock()->unix_seconds();
  const Diagnosis found = diagnose(looks, looks, 0, now);
  if (looks.empty() && incidents.empty() && failure.is_null())
    bad_input("{}: nothing is recorded there of its workers", folder);
  if (json) {
    Ordered ranks = Ordered::array();
    for (const RankLook& l : looks) {
      Ordered rank = to_json(l, now);
      for (const RingView::Event& e : l.ring.events)
        rank["events"].push_back({{"time", e.time}, {"step", e.step}, {"peer", e.peer}, {"what", e.what}});
      ranks.push_back(std::move(rank));
    }
    return fmt::print(
        "{}\n",
        Ordered{
            {"run", folder}, {"wrong", to_json(found)}, {"failed", failure}, {"incidents", incidents}, {"ranks", ranks}}
            .dump(-1, ' ', false, Ordered::error_handler_t::replace));
  }
  for (const RankLook& l : looks) {
    fmt::print("rank {} of {}, process {}: {}, step {}, {}\n", l.ring.rank, l.ring.host, l.ring.process, state_of(l),
               l.ring.step,
               does(l, lives(l)                ? now
                       : l.ring.events.empty() ? l.ring.since
                                               : l.ring.events.back().time));
    const std::size_t skipped = l.ring.events.size() - std::min(events_shown, l.ring.events.size());
    for (std::size_t i = skipped; i < l.ring.events.size(); ++i) {
      const RingView::Event& e = l.ring.events[i];
      fmt::print("    {}  step {:<6} {}{}\n", time_text(e.time), e.step + 1, e.what,
                 e.peer >= 0 ? fmt::format(" (rank {})", e.peer) : "");
    }
  }
  for (const Json& i : incidents) fmt::print("{}\n", incident_text(i));
  if (!failure.is_null() && failure.contains("rank"))
    fmt::print("it failed on rank {}: {}\n", failure.at("rank").dump(), failure.value("reason", ""));
  fmt::print("{}\n", found.text());
}

}  // namespace echelon::cli
