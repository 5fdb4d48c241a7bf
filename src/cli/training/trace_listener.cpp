#include "cli/training/trace_listener.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/text.h"
#include "track/trace.h"
#include "world/wrappers/metered.h"

namespace echelon::cli {

TraceListener::TraceListener(Team& team, Engine& engine)
    : team_(team),
      offset_(team.clock_offset()),
      origin_(team.world().now()),
      operations_(static_cast<std::size_t>(team.cores().count())) {
  for (auto& of_core : operations_) of_core.reserve(most_operations);
  keep_messages(team.world(), most_operations);
  engine.watch({.now = [&team] { return team.world().now(); },
                .on_node =
                    [this](int core, const Node& node, double begin, double end) {
                      auto& list = operations_[static_cast<std::size_t>(core)];
                      if (list.size() < most_operations) list.push_back({&node, begin, end});
                    },
                .on_span = [this](const Span& span) { spans_.push_back(span); },
                .on_task =
                    [this](const StageTask& task, double begin, double end) {
                      if (tasks_.size() < most_operations) tasks_.push_back({task, begin, end});
                    }});
}

namespace {

// A rank's timelines: the driving thread, its cores, then a row for each micro-batch of a split model.
std::string label_of(std::uint32_t timeline, std::size_t cores) {
  if (timeline == 0) return "training";
  return timeline <= cores ? fmt::format("core {}", timeline - 1) : fmt::format("micro-batch {}", timeline - 1 - cores);
}

// When the driving thread was held up by which rank: what is kept of waits, of whichever task, lies within its
// exchanges and sums, in order, and no two at once.
std::vector<Team::Wait> waits_within(const std::vector<Span>& spans, std::vector<Team::Wait> waits) {
  std::ranges::sort(waits, {}, &Team::Wait::begin);
  std::vector<Team::Wait> kept;
  double free_from = -1e300;
  std::size_t first = 0;
  std::vector<Span> exchanges;
  for (const Span& s : spans)
    if (s.exchange) exchanges.push_back(s);
  std::ranges::sort(exchanges, {}, &Span::begin);
  for (const Team::Wait& w : waits) {
    while (first < exchanges.size() && exchanges[first].end <= w.begin) ++first;
    for (std::size_t i = first; i < exchanges.size() && exchanges[i].begin < w.end; ++i) {
      const double begin = std::max({w.begin, exchanges[i].begin, free_from}), end = std::min(w.end, exchanges[i].end);
      if (end <= begin) continue;
      kept.push_back({w.rank, begin, end});
      free_from = end;
    }
  }
  return kept;
}

}  // namespace

TraceListener::Bars TraceListener::bars() const {
  Bars all;
  const auto name = [&all](const std::string& text) {
    all.names.insert(all.names.end(), text.begin(), text.end());
    all.names.push_back('\0');
    return all.name_count++;
  };
  const auto add = [&, this](std::uint32_t timeline, Kind kind, std::uint32_t name, double begin, double end) {
    all.list.push_back({begin + offset_, end + offset_, timeline, name, kind, -1, 0});
  };
  std::map<std::string, std::uint32_t> numbers;
  const auto named = [&](const std::string& text) {
    const auto [at, is_new] = numbers.try_emplace(text);
    if (is_new) at->second = name(text);
    return at->second;
  };
  for (const Span& s : spans_) add(0, Kind::run, named(s.name), s.begin, s.end);
  for (const Team::Wait& w : waits_within(spans_, team_.kept_waits()))
    add(0, Kind::run, named(fmt::format("waiting for rank {}", w.rank)), w.begin, w.end);
  std::map<const Node*, std::uint32_t> of_nodes;
  for (std::size_t core = 0; core < operations_.size(); ++core)
    for (const Operation& o : operations_[core]) {
      const auto [at, is_new] = of_nodes.try_emplace(o.node);
      if (is_new) at->second = name(fmt::format("{} {}", o.node->layer, o.node->op->name()));
      add(static_cast<std::uint32_t>(core + 1), o.node->backward ? Kind::backward : Kind::forward, at->second, o.begin,
          o.end);
    }
  const std::size_t first_row = operations_.size() + 1;
  for (const PlannedTask& t : tasks_)
    add(static_cast<std::uint32_t>(first_row) + static_cast<std::uint32_t>(t.task.micro_batch),
        t.task.pass == Pass::forward ? Kind::forward : Kind::backward,
        named(fmt::format("{} of stage {}", name_of(t.task.pass), t.task.stage)), t.begin, t.end);
  for (const SentMessage& m : kept_messages(team_.world()))
    all.list.push_back({m.at + offset_, m.at + offset_, of_messages,
                        named(fmt::format("{} to rank {}", to_string(m.kind), m.to)), Kind::message, m.to,
                        static_cast<double>(m.bytes)});
  return all;
}

// What all ranks have, by rank.
template <typename T>
std::vector<std::vector<T>> TraceListener::gather(const std::vector<T>& mine) {
  const std::vector<std::size_t> counts = team_.all_gather_struct(mine.size());
  const auto own = counts.begin() + team_.world().rank();
  std::vector<T> all(std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
  std::ranges::copy(mine,
                    all.begin() + static_cast<std::ptrdiff_t>(std::accumulate(counts.begin(), own, std::size_t{0})));
  team_.all_gather_structs(std::span(all), counts);
  std::vector<std::vector<T>> of_ranks;
  auto at = all.begin();
  for (const std::size_t count : counts) {
    of_ranks.emplace_back(at, at + static_cast<std::ptrdiff_t>(count));
    at += static_cast<std::ptrdiff_t>(count);
  }
  return of_ranks;
}

void TraceListener::write(Disk& disk, const std::string& path, const std::function<void(const std::string&)>& tell) {
  const Bars mine = bars();
  const auto lists = gather(mine.list);
  const auto names = gather(mine.names);
  if (team_.world().rank() > 0) return;

  double origin = origin_;  // the first thing that any rank did
  for (const auto& list : lists)
    for (const Bar& bar : list) origin = std::min(origin, bar.begin);
  Trace trace(origin, most_operations);
  const std::array<Trace::Name, 4> kinds{trace.name("run"), trace.name("forward"), trace.name("backward"),
                                         trace.name("message")};
  const Trace::Name to = trace.name("to"), bytes = trace.name("bytes");
  for (std::size_t r = 0; r < lists.size(); ++r) {
    std::vector<Trace::Name> of_rank;
    for (const std::string_view text : split({names[r].data(), names[r].size()}, '\0'))
      of_rank.push_back(trace.name(text));
    for (const Bar& bar : lists[r]) {
      const bool message = bar.kind == Kind::message;
      const std::string label = message ? "messages" : label_of(bar.timeline, operations_.size());
      Trace::Timeline& timeline = trace.timeline(static_cast<int>(r), static_cast<int>(bar.timeline), label);
      const Trace::Name kind = kinds[static_cast<std::size_t>(bar.kind)];
      if (message)
        timeline.add(of_rank[bar.name], kind, bar.begin, bar.end,
                     {{to, static_cast<double>(bar.to)}, {bytes, bar.bytes}});
      else
        timeline.add(of_rank[bar.name], kind, bar.begin, bar.end);
    }
  }
  try {
    trace.write(disk, path);
  } catch (const Failure& problem) {
    tell(fmt::format("the trace was not written: {}", problem.what()));
  }
}

}  // namespace echelon::cli
