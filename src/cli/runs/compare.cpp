// `echelon compare`: the same recipe under several systems, one after the other in the same world, and what came of it.
// Each is an `echelon train` of its own, so that nothing of one is left when the next begins.

#include <fmt/ranges.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "cli/complaints.h"
#include "cli/runs/comparison.h"
#include "cli/training/world_flags.h"
#include "cli/verbs.h"
#include "recipe/prepare.h"
#include "run/job.h"
#include "run/training/interrupted.h"
#include "world/os/command.h"
#include "world/os/host.h"
#include "world/os/signals.h"

namespace echelon::cli {

namespace {

struct CompareSettings {
  std::string recipe;
  std::vector<std::string> systems, overrides;
  std::vector<Flag> world_flags;
  WorldFlags world;
  std::int64_t epochs = 0;
  double target = 0;
  std::string root = "runs";
  bool json = false;
};

// The recipe that comes with the program, from wherever it was started.
std::string usual_recipe(Disk& disk) {
  const std::string program = program_directory(), name = "recipes/demo.toml";
  for (const std::string& path : {name, program + "/../" + name, program + "/../share/echelon/" + name})
    if (disk.exists(path)) return path;
  return name;
}

std::vector<std::string> all_overrides(const CompareSettings& s) {
  std::vector<std::string> all = s.overrides;
  if (s.epochs > 0) all.push_back(fmt::format("train.epochs={}", s.epochs));
  return all;
}

// Whatever is wrong with any of them is said before the first one starts.
void check_all(Disk& disk, const CompareSettings& s) {
  const ExpectedWorld world = expected_world(s.world);
  std::set<std::string> seen;
  Complaints complaints;
  for (const std::string& system : s.systems) {
    if (system.empty()) {
      complaints.add("--systems has an empty name between its commas: leave it out");
      continue;
    }
    if (!seen.insert(std::filesystem::path(system).stem().string()).second)
      complaints.add(fmt::format("--systems names {} twice", system));
    Problems problems;
    const PreparedRun prepared = prepare_run(disk, s.recipe, all_overrides(s), problems, data::usual_places(), system);
    if (!problems.empty()) {
      complaints.add(problems.text(s.recipe));
      continue;
    }
    try {
      check_system(make_job(prepared), world.workers, world.shares_memory, system);
    } catch (const BadInput& problem) {
      complaints.add(problem.what());
    }
  }
  complaints.throw_if_any();
}

std::string last_lines(const std::string& text) {
  std::vector<std::string_view> lines;
  for (const std::string_view line : split(text, '\n'))
    if (!line.empty()) lines.push_back(line);
  constexpr std::size_t most = 12;
  std::string out;
  for (std::size_t i = lines.size() > most ? lines.size() - most : 0; i < lines.size(); ++i)
    out += fmt::format("{}{}", out.empty() ? "" : "\n  ", lines[i]);
  return out;
}

std::string in_words(const ComparedRun& run) {
  const ComparedResult r = result_of(run, 0);
  std::string text = fmt::format("{} {}", was_interrupted(r.ended_by) ? "stopped after" : "done in",
                                 human_duration(r.seconds.value_or(0)));
  if (r.accuracy) text += fmt::format(", test accuracy {:.2f} %", 100 * *r.accuracy);
  return text;
}

ComparedRun run_one(Disk& disk, const CompareSettings& s, const std::string& system, const std::string& folder,
                    const std::atomic<bool>& stop) {
  const std::string name = std::filesystem::path(system).stem().string();
  const RunFolder run{folder + "/" + name};
  Command command{.argv = {program_directory() + "/echelon", "train", s.recipe, "--system", system, "--run", run.path},
                  .limit_seconds = 1e9,
                  .tick = {},
                  .stop = &stop};
  for (const std::string& o : all_overrides(s)) command.argv.insert(command.argv.end(), {"--set", o});
  for (std::string& word : given_words(s.world_flags)) command.argv.push_back(std::move(word));
  command.argv.push_back("--json");
  int ticks = 0;
  const bool live = is_terminal(2);
  command.tick = [&] {
    if (!live || ++ticks % 10 != 0) return;
    if (const auto last = read_run(disk, run).last) fmt::print(stderr, "\r{}: epoch {:.2f}\033[K", name, last->epoch);
  };
  if (live) fmt::print(stderr, "{}: starting", name);
  const CommandResult result = run_command(command);
  if (live) fmt::print(stderr, "\r\033[K");
  ComparedRun compared = read_compared(disk, name, run);
  if (result.exit_code != 0) compared.failed = last_lines(result.output);
  fmt::print(stderr, "{}: {}\n", name, compared.failed.empty() ? in_words(compared) : compared.failed);
  return compared;
}

void report(Disk& disk, const CompareSettings& s, const std::string& folder, const std::vector<ComparedRun>& runs) {
  Json result{{"folder", folder}, {"recipe", s.recipe}, {"results", comparison_json(runs, s.target)}};
  if (s.target > 0) result["target"] = s.target;
  const std::vector<ComparedPlot> plots = comparison_plots(runs);
  result["plots"] = Json::array();
  for (const ComparedPlot& plot : plots) {
    const std::string path = fmt::format("{}/{}.svg", folder, plot.name);
    write_file_atomically(disk, path, plot_svg(plot.series, plot.options));
    result["plots"].push_back(path);
  }
  write_file_atomically(disk, folder + "/comparison.json", result.dump(1) + "\n");
  if (s.json) {
    fmt::print("{}\n", result.dump());
    return;
  }
  const int columns = std::min(100, terminal_columns(1));
  for (const ComparedPlot& plot : plots)
    fmt::print("{}\n", plot_text(plot.series, plot.options, columns, 16, is_terminal(1)));
  fmt::print("{}\ncurves as SVG, comparison.json and all runs: {}\n", comparison_table(runs, s.target), folder);
}

void compare(CompareSettings s) {
  const auto disk = make_real_disk();
  if (s.recipe.empty()) s.recipe = usual_recipe(*disk);
  check_all(*disk, s);
  std::string command =
      "echelon compare " + shell_quoted(s.recipe) + " --systems " + fmt::format("{}", fmt::join(s.systems, ","));
  for (const std::string& o : all_overrides(s)) command += " --set " + shell_quoted(o);
  for (const std::string& word : given_words(s.world_flags)) command += " " + word;
  const std::string folder = create_folder(*disk, s.root, "compare", "command.txt", command + "\n");
  StopSignals signals;
  std::vector<ComparedRun> runs;
  for (const std::string& system : s.systems) {
    if (signals.flag()) break;
    runs.push_back(run_one(*disk, s, system, folder, signals.flag()));
  }
  report(*disk, s, folder, runs);
  if (signals.flag()) fail("stopped by a signal after {} of {} systems", runs.size(), s.systems.size());
  std::string failed;
  for (const ComparedRun& run : runs)
    if (!run.failed.empty()) failed += (failed.empty() ? "" : ", ") + run.system;
  if (!failed.empty()) fail("not all systems have trained: {}", failed);
}

}  // namespace

void add_compare(Verb program) {
  const Verb verb = program.add_subcommand("compare", "Train one recipe under several systems and compare them");
  auto s = std::make_shared<CompareSettings>();
  verb.add_option("recipe", s->recipe, "A recipe (TOML; default: recipes/demo.toml)");
  verb.add_texts(
          "--systems",
          [s](const std::vector<std::string>& lists) {
            for (const std::string& list : lists)
              for (const std::string_view name : split(list, ',')) s->systems.emplace_back(name);
          },
          "Names of `echelon systems`, or files: bsp,ssp,easgd")
      .required()
      .one_each_time();
  verb.add_option("--set", s->overrides, "Change one setting of the recipe, for all: --set optim.lr=0.05")
      .one_each_time();
  verb.add_option("--epochs", s->epochs, "Train so long (default: as the recipe says)").range(1, 1000000);
  verb.add_option("--target", s->target, "Also say when this accuracy on the test data was reached (0 to 1)")
      .range(0.0, 1.0);
  verb.add_option("--root", s->root, "Where the comparison's folder is made").show_default();
  verb.add_flag("--json", s->json, "Print one JSON object with the result as the last line");
  s->world_flags = add_world_flags(verb, s->world);
  for (const Flag& flag : add_trouble_flags(verb, s->world)) s->world_flags.push_back(flag);
  verb.footer(
      "Examples:\n"
      "  echelon compare --systems bsp,ssp,easgd,gosgd --workers 4 --link 100mbit\n"
      "  echelon compare --systems bsp,ssp --workers 4 --straggler rank=1,factor=4\n"
      "  echelon compare recipes/models/mlp-mnist.toml --systems bsp,fp16,dgc --workers 4 --target 0.985 --epochs 5\n"
      "Ctrl-C ends the system that runs and reports what there is.");
  verb.action([s] { compare(*s); });
}

}  // namespace echelon::cli
