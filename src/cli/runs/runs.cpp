// `echelon runs`: what has been trained here; one run in detail; any number beside each other.

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/report.h"
#include "cli/runs/run_facts.h"
#include "cli/runs/run_table.h"
#include "cli/runs/runs.h"
#include "cli/verbs.h"
#include "recipe/differences.h"
#include "track/curve.h"
#include "world/os/folder_disk.h"
#include "world/os/host.h"

namespace echelon::cli {

namespace {

void list_all(const std::string& root, bool json) {
  const auto disk = make_real_disk();
  std::vector<RunFacts> runs;
  for (RunInfo& info : list_runs(*disk, root)) try {
      runs.push_back(run_facts(info.folder));
      runs.back().info.name = info.name;
    } catch (const Error&) {  // `runs show` says why; the others are listed all the same
      runs.push_back({.info = std::move(info), .recipe = {}, .model = "-", .state = "unreadable", .best = {}});
    }
  if (json) {
    Json all = Json::array();
    for (const RunFacts& r : runs) all.push_back(to_json(r));
    fmt::print("{}\n", all.dump());
    return;
  }
  if (runs.empty()) {
    fmt::print("no runs in {}/ yet. Try: echelon train recipes/demo.toml\n", root);
    return;
  }
  TextTable table({"run", "started (UTC)", "model", "steps", "epochs", "best", "state"});
  for (const RunFacts& r : runs)
    table.add({r.info.name, started_text(r), r.model,
               r.info.summary.is_object() ? summary_cell(r.info.summary, "steps", "{:.0f}")
               : r.info.last              ? std::to_string(r.info.last->step)
                                          : "0",
               summary_cell(r.info.summary, "epochs", "{:.2f}"), best_text(r), r.state});
  fmt::print("{}", table.text());
}

// The curves worth showing: training and test loss of each run; of many runs the latter only.
std::vector<Series> loss_curves(const std::vector<RunFacts>& runs) {
  constexpr std::size_t many = 3;
  std::vector<Series> all;
  for (const RunFacts& r : runs) {
    const auto points = read_metrics(*make_folder_disk(r.info.folder.path), r.info.folder.metrics()).points;
    std::vector<Series> own;
    for (const char* metric : {"train_loss", "val_loss", "test_loss"}) {
      Series s = series_of(points, metric);
      if (s.x.empty()) continue;
      s.name = runs.size() > 1 ? fmt::format("{} {}", r.info.name, metric) : metric;
      own.push_back(std::string(metric) == "train_loss" ? smoothed(s, 8) : std::move(s));
    }
    if (runs.size() > many && own.size() > 1) own.erase(own.begin(), own.end() - 1);
    for (Series& s : own) all.push_back(std::move(s));
  }
  return all;
}

struct Row {
  const char *key, *title, *format;
};
constexpr Row summary_rows[]{{"steps", "steps", "{:.0f}"},
                             {"epochs", "epochs", "{:.2f}"},
                             {"train_loss", "train loss", "{:.4f}"},
                             {"test_loss", "test loss", "{:.4f}"},
                             {"test_accuracy", "accuracy", "{:.4f}"},
                             {"samples_per_s", "samples/s", "{:.0f}"},
                             {"seconds", "seconds", "{:.1f}"}};

std::string hash_of(const RunFacts& r) {
  return r.info.summary.is_object() ? r.info.summary.value("weights_sha256", std::string("-")) : "-";
}

void print_one(const RunFacts& r) {
  const auto line = [](const char* what, const std::string& value) { fmt::print("{:<18} {}\n", what, value); };
  line("run", r.info.folder.path);
  line("model", r.model);
  line("started (UTC)", started_text(r));
  for (const Row& row : summary_rows) line(row.key, summary_cell(r.info.summary, row.key, row.format));
  for (const auto& [key, value] : r.info.summary.items())  // what else was evaluated
    if ((key.starts_with("val_") || key.starts_with("test_")) && value.is_number() && key != "test_loss" &&
        key != "test_accuracy")
      line(key.c_str(), summary_cell(r.info.summary, key.c_str(), "{:.4f}"));
  line("tested_step", summary_cell(r.info.summary, "tested_step", "{:.0f}"));
  line("peak_share", summary_cell(r.info.summary, "peak_share", "{:.2f}"));
  line("best", r.best ? fmt::format("{} at step {} ({}): what eval and predict use", best_text(r), r.best->step,
                                    rule_of_best(r.best->metric))
                      : "-");
  line("state", r.state);
  line("weights sha256", hash_of(r));
}

// Of several: what differed, what came of it, and whose weights are the same bits.
void print_several(const std::vector<RunFacts>& runs, const std::vector<DifferingKey>& differing) {
  if (!differing.empty()) {
    std::vector<std::string> names{"what differed"};
    for (const DifferingKey& d : differing) names.push_back(d.key);
    TextTable table(names);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      std::vector<std::string> cells{runs[i].info.name};
      for (const DifferingKey& d : differing) cells.push_back(brief(d.values[i]));
      table.add(cells);
    }
    fmt::print("{}\n", table.text());
  } else {
    fmt::print("the recipes do not differ\n\n");
  }
  std::vector<std::string> names{"result"};
  for (const Row& row : summary_rows) names.emplace_back(row.title);
  names.insert(names.end(), {"best", "state", "weights"});
  TextTable table(names);
  for (const RunFacts& r : runs) {
    std::vector<std::string> cells{r.info.name};
    for (const Row& row : summary_rows) cells.push_back(summary_cell(r.info.summary, row.key, row.format));
    cells.insert(cells.end(), {best_text(r), r.state, hash_of(r).substr(0, 8)});
    table.add(cells);
  }
  fmt::print("{}\n", table.text());
  std::map<std::string, std::vector<std::string>> same;
  for (const RunFacts& r : runs)
    if (hash_of(r) != "-") same[hash_of(r)].push_back(r.info.name);
  for (const auto& [hash, names_of_it] : same)
    if (names_of_it.size() > 1) fmt::print("the same bits: {}\n", joined(names_of_it));
  if (same.size() == runs.size()) fmt::print("no two have the same weights\n");
}

}  // namespace

void show_runs(const std::string& root, const std::vector<std::string>& names, const std::string& svg, bool json) {
  const auto disk = make_real_disk();
  std::string missing;
  std::vector<RunFacts> runs;
  for (const std::string& n : names) try {
      runs.push_back(run_facts(open_run(*disk, root, n)));
      RunInfo& info = runs.back().info;
      if (info.folder.path.starts_with(root + "/")) info.name = info.folder.path.substr(root.size() + 1);
    } catch (const BadInput& problem) {
      missing += (missing.empty() ? "" : "\n") + std::string(problem.what());
    }
  if (!missing.empty()) throw BadInput(missing);
  const std::vector<Series> curves = loss_curves(runs);
  const PlotOptions options{.title = "loss", .x_label = "step", .y_label = "", .log_y = true};
  if (!svg.empty()) write_named_file(*disk, svg, plot_svg(curves, options));
  std::vector<Options> recipes;
  for (const RunFacts& r : runs) recipes.push_back(r.recipe);
  const std::vector<DifferingKey> differing = differing_keys(recipes);
  if (json) {
    Json all = Json::array();
    for (std::size_t i = 0; i < runs.size(); ++i) {
      all.push_back(to_json(runs[i]));
      for (const DifferingKey& d : differing) all[i]["recipe"][d.key] = d.values[i];
    }
    fmt::print("{}\n", names.size() == 1 ? all[0].dump() : all.dump());
    return;
  }
  if (runs.size() == 1)
    print_one(runs[0]);
  else
    print_several(runs, differing);
  if (!curves.empty())
    fmt::print("\n{}\n", plot_text(curves, options, std::min(100, terminal_columns(1)), 18, is_terminal(1)));
  if (!svg.empty()) fmt::print("wrote {}\n", svg);
}

void add_runs(Verb program) {
  const Verb verb = program.add_subcommand("runs", "List runs, find, show, compare, tag and keep them");
  verb.require_subcommand(1);
  verb.footer(
      "Examples:\n  echelon runs list\n  echelon runs show demo-1 --svg curve.svg\n"
      "  echelon runs compare demo-1 demo-2 demo-3\n"
      "  echelon runs find \"test_accuracy > 0.98 and optim.lr < 0.1 order by seconds\"");
  struct Settings {
    std::string root = "runs", svg;
    std::vector<std::string> names;
    bool json = false;
  };
  auto s = std::make_shared<Settings>();
  auto part = [&](const char* name, const char* help, const char* example) {
    const Verb p = verb.add_subcommand(name, help);
    p.add_option("--root", s->root, "Where the runs are").show_default();
    p.add_flag("--json", s->json, "Print JSON");
    p.footer(std::string("Example:\n  ") + example);
    return p;
  };
  part("list", "All runs: since when, what, how good at best, and whether they go on", "echelon runs list").action([s] {
    list_all(s->root, s->json);
  });
  const Verb showing = part("show", "One run: result and curve", "echelon runs show demo-1 --svg curve.svg");
  showing.add_option("run", s->names, "A run's folder, or its name in runs/").required().exactly(1);
  const Verb comparing = part("compare", "Runs beside each other: what differed, results, curves",
                              "echelon runs compare demo-1 demo-2 demo-3\n  echelon runs compare runs/demo-sweep-1/*");
  comparing.add_option("runs", s->names, "Two or more runs").required();
  for (const Verb p : {showing, comparing}) {
    p.add_option("--svg", s->svg, "Also write the curve as an SVG file");
    p.action([s, several = p.name() == "compare"] {
      if (several && s->names.size() < 2) bad_input("runs compare takes two runs or more; one is shown by runs show");
      show_runs(s->root, s->names, s->svg, s->json);
    });
  }
  add_runs_registry(verb);
  add_runs_archive(verb);
}

}  // namespace echelon::cli
