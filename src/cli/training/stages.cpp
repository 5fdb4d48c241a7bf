#include "cli/training/stages.h"

#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "recipe/toml.h"
#include "world/os/host.h"

namespace echelon::cli {

namespace {

constexpr std::uint64_t most_stage_bytes = 64 << 10;

std::string find_stages(Disk& disk, const std::string& name) {
  if (name.ends_with(".toml")) {
    if (disk.exists(name) && !disk.is_directory(name)) return name;
    bad_input("--stages {}: there is no such file", name);
  }
  const std::string program = program_directory();
  std::vector<std::string> known;
  for (const std::string& place :
       {std::string("recipes/stages"), program + "/../recipes/stages", program + "/../share/echelon/recipes/stages"}) {
    if (const std::string path = place + "/" + name + ".toml"; disk.exists(path)) return path;
    if (disk.is_directory(place))
      for (const std::string& file : disk.list(place)) known.push_back(std::filesystem::path(file).stem());
  }
  bad_input("--stages {}: there are no such stages{}; name one in recipes/stages, or a file: PATH.toml", name,
            did_you_mean(name, known));
}

// The changes of one stage, whose first is made after `step` steps.
void add_stage(OptionReader& r, std::int64_t step, std::vector<JournalLine>& changes, Problems& problems) {
  const std::size_t before = changes.size();
  const auto add = [&](ControlRequest request) {
    try {
      check_control(request);
    } catch (const BadInput& problem) {
      problems.add(Place(0, r.where()), problem.what());
    }
    changes.push_back({step + static_cast<std::int64_t>(changes.size() - before), std::move(request)});
  };
  // The workers first: a system or a plan may want so many.
  if (r.has("workers")) add({.action = "resize", .value = static_cast<double>(r.integer("workers", 1))});
  if (r.has("system")) add({.action = "switch", .system = r.text("system", "")});
  if (r.has("codec")) add({.action = "switch", .codec = r.text("codec", "")});
  if (r.has("plan")) add({.action = "switch", .plan = r.text("plan", "")});
  if (r.has("rate")) add({.action = "rate", .value = r.number("rate", 1)});
  const std::vector<std::int64_t> servers = r.integers("servers", {}, 1, most_workers_asked);
  const std::int64_t steps = r.integer("steps", 20, 2);  // in which each number of servers is tried
  for (std::size_t i = 0; i < servers.size(); ++i) {
    add({.action = "switch", .servers = std::to_string(servers[i])});
    if (i > 0) changes.back().step = changes[changes.size() - 2].step + steps;
  }
  if (servers.size() > 1) {
    add({.action = "switch", .servers = "quickest"});
    changes.back().step = changes[changes.size() - 2].step + steps;
  }
  if (changes.size() == before)
    problems.add(Place(0, r.where()),
                 "a stage changes workers, system, codec, plan, rate or servers: this one changes nothing");
}

std::string change_in_words(const JournalLine& line) {
  const ControlRequest& q = line.request;
  const std::string what = q.action == "resize" ? fmt::format("{:g} workers", q.value)
                           : q.action == "rate" ? fmt::format("{:g} times the rate", q.value)
                                                : echelon::in_words(q);
  return fmt::format("after step {}: {}", line.step, what);
}

}  // namespace

std::string Stages::in_words() const {
  std::string text =
      fmt::format("stages {}{}{}\n", name, title.empty() ? "" : ": " + title, paper.empty() ? "" : " (" + paper + ")");
  for (const std::string_view line : split(program, '\n'))
    if (!line.empty()) text += fmt::format("    {}\n", line);
  for (const JournalLine& line : changes) text += fmt::format("  {}\n", change_in_words(line));
  if (!deviates.empty()) text += "  deviates: " + deviates + (deviates.ends_with('\n') ? "" : "\n");
  return text;
}

Stages read_stages(Disk& disk, const std::string& name_or_path, const PreparedRun& prepared) {
  const std::string path = find_stages(disk, name_or_path);
  TomlLimits limits;
  limits.bytes = most_stage_bytes;
  const Options tree = parse_toml(read_text(disk, path, most_stage_bytes), path, limits);
  Problems problems;
  OptionReader r(tree, problems);
  Stages s;
  s.name = std::filesystem::path(path).stem();
  for (const auto& [key, to] : std::initializer_list<std::pair<const char*, std::string*>>{{"title", &s.title},
                                                                                           {"paper", &s.paper},
                                                                                           {"about", &s.about},
                                                                                           {"program", &s.program},
                                                                                           {"deviates", &s.deviates},
                                                                                           {"example", &s.example}})
    *to = r.text(key, "");
  for (OptionReader& stage : r.tables("stage")) {
    const bool by_epoch = stage.has("at_epoch");
    if (by_epoch == stage.has("at_step"))
      problems.add(Place(0, stage.where()), "a stage begins at_epoch or at_step: one of them");
    const double epoch = stage.number("at_epoch", 1, 0);
    const std::int64_t at = stage.integer("at_step", 1, 1);
    const auto each = static_cast<double>(prepared.batch_sequence().steps_before(1));
    const auto step = std::max<std::int64_t>(1, by_epoch ? static_cast<std::int64_t>(epoch * each) : at);
    const std::int64_t free = s.changes.empty() ? 1 : s.changes.back().step + 1;
    if (!s.changes.empty() && step < free)
      problems.add(Place(0, stage.where()), fmt::format("stages are in the order of their steps, and do not overlap: "
                                                        "this one begins at step {}, not before {} is possible",
                                                        step, free));
    add_stage(stage, step, s.changes, problems);
    stage.done();
  }
  r.done();
  if (s.changes.empty()) problems.add(Place(0, path), "there is no [[stage]]");
  problems.throw_if_any(path);
  return s;
}

}  // namespace echelon::cli
