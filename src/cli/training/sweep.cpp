#include "cli/training/sweep.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "cli/complaints.h"
#include "cli/runs/runs.h"
#include "recipe/prepare.h"
#include "run/job.h"
#include "run/run_plan.h"
#include "track/run.h"
#include "world/os/command.h"
#include "world/os/host.h"
#include "world/os/signals.h"

namespace echelon::cli {

namespace {

constexpr std::size_t most_runs = 1000;

bool same_value(std::string_view a, std::string_view b) {
  const auto number = [](std::string_view text) -> std::optional<double> {
    double x = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
    if (error != std::errc() || end != text.data() + text.size()) return {};
    return x;
  };
  return a == b || (number(a) && number(a) == number(b));
}

// "lr=0.01,batch=64": the settings that change, without their tables; fit for a folder's name.
std::string name_of(const std::vector<std::string>& overrides, const std::vector<std::string>& combination) {
  std::string name;
  for (std::size_t i = 0; i < overrides.size(); ++i) {
    if (values_of_override(overrides[i]).size() == 1) continue;
    const std::string& text = combination[i];
    const std::size_t equals = text.find('='), dot = text.find_last_of('.', equals);
    name += (name.empty() ? "" : ",") + text.substr(dot == std::string::npos ? 0 : dot + 1);
  }
  for (char& c : name)
    if (c == '/' || c == ' ' || c == '"' || c == '\'') c = '_';
  return name;
}

// Each run has a folder of its own, and equal settings make equal runs.
void expect_different(const std::vector<std::string>& overrides, const std::vector<std::vector<std::string>>& all) {
  for (const std::string& o : overrides) {
    const std::vector<std::string> values = values_of_override(o);
    for (std::size_t i = 0; i < values.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (same_value(values[i], values[j]))
          bad_input("--set {}: {} and {} are the same value, which would be the same run twice: leave one out", o,
                    values[j], values[i]);
  }
  std::map<std::string, const std::vector<std::string>*> named;
  for (const auto& combination : all)
    if (const auto [it, fresh] = named.emplace(name_of(overrides, combination), &combination); !fresh)
      bad_input("two runs of the sweep would have the folder '{}' (--set {} and --set {}): train them one by one",
                it->first, fmt::join(*it->second, " --set "), fmt::join(combination, " --set "));
}

TrainSettings with(const TrainSettings& s, const std::vector<std::string>& overrides) {
  TrainSettings one = s;
  one.overrides = overrides;
  return one;
}

// Whatever is wrong with any of them is said before the first one starts.
void check_all(Disk& disk, const TrainSettings& s, const std::vector<std::vector<std::string>>& all) {
  Complaints complaints;
  const ExpectedWorld world = expected_world(s.world);
  for (const auto& overrides : all) {
    Problems problems;
    PreparedRun prepared = prepare_run(disk, s.recipe, overrides, problems, data::usual_places(), s.system);
    if (prepared.recipe.start && s.resume == Resume::no) load_initial_weights(disk, prepared, problems);
    const PlanSpec plan = read_run_plan(disk, prepared.recipe, s.plan, problems);
    check_system(prepared, {world.workers, world.shares_memory, plan}, problems);
    if (!problems.empty()) complaints.add(problems.text(s.recipe));
  }
  complaints.throw_if_any();
}

std::string sweep_folder(Disk& disk, const TrainSettings& s) try {
  const std::string text = s.command() + "\n";
  if (s.run.empty()) {
    if (s.resume == Resume::yes)
      bad_input("--resume of a sweep needs its folder: --run {}/NAME, or --resume=auto with it", s.root);
    return create_folder(disk, s.root, std::filesystem::path(s.recipe).stem().string() + "-sweep", "command.txt", text);
  }
  if (s.resume == Resume::no && disk.exists(s.run) && (!disk.is_directory(s.run) || !disk.list(s.run).empty()))
    bad_input("{}: is not an empty folder; name another one with --run, or go on with --resume", s.run);
  disk.make_directories(s.run);
  write_file_atomically(disk, s.run + "/command.txt", text);
  return s.run;
} catch (const DiskError& problem) {
  bad_input("the sweep's folder cannot be made ({}); name another place with --run DIR", problem.what());
}

}  // namespace

std::vector<std::string> values_of_override(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) return {text};
  std::vector<std::string> values{""};
  int depth = 0;
  char quote = 0;
  for (const char c : std::string_view(text).substr(equals + 1)) {
    if (quote)
      quote = c == quote ? char{0} : quote;
    else if (c == '"' || c == '\'')
      quote = c;
    else if (c == '[' || c == '{')
      ++depth;
    else if (c == ']' || c == '}')
      --depth;
    if (c == ',' && depth == 0 && !quote)
      values.emplace_back();
    else
      values.back() += c;
  }
  return values;
}

bool is_sweep(const std::vector<std::string>& overrides) {
  return std::ranges::any_of(overrides, [](const std::string& o) { return values_of_override(o).size() > 1; });
}

std::vector<std::vector<std::string>> combinations(const std::vector<std::string>& overrides) {
  std::vector<std::vector<std::string>> all{{}};
  for (const std::string& text : overrides) {
    std::vector<std::vector<std::string>> longer;
    const std::vector<std::string> values = values_of_override(text);
    if (all.size() * values.size() > most_runs)
      bad_input("the --set flags make more than {} combinations: take fewer values at a time", most_runs);
    for (const auto& one : all)
      for (const std::string& value : values) {
        longer.push_back(one);
        if (values.size() == 1)
          longer.back().push_back(text);
        else
          longer.back().push_back(text.substr(0, text.find('=') + 1) + value);
      }
    all = std::move(longer);
  }
  return all;
}

void sweep(const TrainSettings& s, const std::vector<std::string>& world_words) {
  const auto disk = make_real_disk();
  for (const std::string& o : s.overrides)
    for (const std::string& value : values_of_override(o))
      if (value.empty()) bad_input("--set {}: there is an empty value between its commas", o);
  const auto all = combinations(s.overrides);
  expect_different(s.overrides, all);
  check_all(*disk, s, all);
  const std::string folder = sweep_folder(*disk, s);
  StopSignals signals;
  std::vector<std::string> done, failed;
  for (const auto& overrides : all) {
    if (signals.flag()) break;
    const RunFolder run{folder + "/" + name_of(s.overrides, overrides)};
    TrainSettings one = with(s, overrides);
    Command command{.argv = {program_directory() + "/echelon", "train", s.recipe, "--run", run.path, "--json"},
                    .limit_seconds = 1e9,
                    .tick = {},
                    .stop = &signals.flag()};
    for (const std::string& o : overrides) command.argv.insert(command.argv.end(), {"--set", o});
    if (!s.system.empty()) command.argv.insert(command.argv.end(), {"--system", s.system});
    command.argv.insert(command.argv.end(), world_words.begin(), world_words.end());
    if (s.resume != Resume::no) command.argv.push_back("--resume=auto");
    if (s.trace) command.argv.push_back("--trace");
    int ticks = 0;
    const bool live = is_terminal(2);
    command.tick = [&] {
      if (!live || ++ticks % 10 != 0) return;
      if (const auto last = read_run(*disk, run).last)
        fmt::print(stderr, "\r{}: epoch {:.2f}\033[K", run.name(), last->epoch);
    };
    const CommandResult result = run_command(command);
    if (live) fmt::print(stderr, "\r\033[K");
    if (disk->exists(run.recipe())) done.push_back(run.path);
    if (result.exit_code != 0) failed.push_back(run.name() + ": " + result.output);
    fmt::print(stderr, "{} of {}: {} {}\n", done.size(), all.size(), run.name(),
               result.exit_code == 0 ? "done" : "failed: " + result.output);
  }
  if (done.size() > 1) show_runs(folder, done, "", s.json);
  if (!s.json) fmt::print("all runs of the sweep: {}\n", folder);
  if (signals.flag())
    fail("stopped by a signal after {} of {} runs; go on with: {}", done.size(), all.size(),
         fmt::format("{} --run {} --resume", with(s, s.overrides).command(), shell_quoted(folder)));
  if (!failed.empty()) fail("{} of {} runs have failed: {}", failed.size(), all.size(), fmt::join(failed, "\n"));
}

}  // namespace echelon::cli
