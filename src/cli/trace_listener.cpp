#include "cli/trace_listener.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "track/trace.h"

namespace echelon::cli {

TraceListener::TraceListener(Team& team, Engine& engine)
    : team_(team),
      offset_(team.clock_offset()),
      origin_(team.world().now()),
      operations_(static_cast<std::size_t>(team.cores().count())) {
  for (auto& of_core : operations_) of_core.reserve(most_operations);
  engine.watch({.now = [&team] { return team.world().now(); },
                .on_node =
                    [this](int core, const Node& node, double begin, double end) {
                      auto& list = operations_[static_cast<std::size_t>(core)];
                      if (list.size() < most_operations) list.push_back({&node, begin, end});
                    },
                .on_span =
                    [this](const char* what, double begin, double end) {
                      spans_.push_back({what, begin, end});
                    }});
}

// timeline, its name, name, category, begin, end; separated by tabs, because layers may have spaces in their names
std::string TraceListener::in_text() const {
  std::string text;
  for (const Span& s : spans_)
    text += fmt::format("0\ttraining\t{}\trun\t{:.9f}\t{:.9f}\n", s.name, s.begin + offset_, s.end + offset_);
  for (std::size_t core = 0; core < operations_.size(); ++core)
    for (const Operation& o : operations_[core])
      text += fmt::format("{}\tcore {}\t{} {}\t{}\t{:.9f}\t{:.9f}\n", core + 1, core, o.node->layer, o.node->op->name(),
                          o.node->backward ? "backward" : "forward", o.begin + offset_, o.end + offset_);
  return text;
}

void TraceListener::write(Disk& disk, const std::string& path, const std::function<void(const std::string&)>& tell) {
  const auto ranks = static_cast<std::size_t>(team_.world().size());
  const auto rank = static_cast<std::size_t>(team_.world().rank());
  const std::string mine = in_text();
  const std::vector<std::size_t> counts = team_.all_gather_struct(mine.size());
  std::size_t all = 0, before = 0;
  for (std::size_t r = 0; r < ranks; ++r) {
    if (r < rank) before += counts[r];
    all += counts[r];
  }
  std::string text(all, '\0');
  text.replace(before, mine.size(), mine);
  team_.all_gather(std::as_writable_bytes(std::span(text)), counts);
  if (rank > 0) return;

  double origin = origin_;  // the first thing that anybody did
  for (const std::string_view line : split(text, '\n'))
    if (const auto fields = split(line, '\t'); fields.size() == 6)
      origin = std::min(origin, std::stod(std::string(fields[4])));
  Trace trace(origin, most_operations);
  std::size_t at = 0;
  for (std::size_t r = 0; r < ranks; ++r) {
    const std::string_view part = std::string_view(text).substr(at, counts[r]);
    at += counts[r];
    for (const std::string_view line : split(part, '\n')) {
      const auto fields = split(line, '\t');
      if (fields.size() != 6) continue;
      trace.timeline(static_cast<int>(r), std::stoi(std::string(fields[0])), fields[1])
          .add(trace.name(fields[2]), trace.name(fields[3]), std::stod(std::string(fields[4])),
               std::stod(std::string(fields[5])));
    }
  }
  try {
    trace.write(disk, path);
  } catch (const Failure& problem) {
    tell(fmt::format("the trace was not written: {}", problem.what()));
  }
}

}  // namespace echelon::cli
