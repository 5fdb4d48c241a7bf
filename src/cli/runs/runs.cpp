// `echelon runs`: what has been trained here; one run in detail; any number beside each other.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/answers/metric_text.h"
#include "cli/folded.h"
#include "cli/report.h"
#include "cli/runs/run_facts.h"
#include "cli/runs/run_table.h"
#include "cli/runs/runs.h"
#include "cli/verbs.h"
#include "parallel/metrics/metric.h"
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
  fmt::print("{}", is_terminal(1) ? table.text(terminal_columns(1), {"epochs", "model", "steps"}) : table.text());
}

// The curves worth showing: training and evaluated loss of each run; of many runs the latter only.
std::vector<Series> loss_curves(const std::vector<RunFacts>& runs) {
  constexpr std::size_t many = 3;
  std::vector<Series> all;
  for (const RunFacts& r : runs) {
    const auto points = read_metrics(*make_folder_disk(r.info.folder.path), r.info.folder.metrics()).points;
    std::vector<Series> own;
    for (const char* metric : {"train_loss", "val_loss", "test_loss"}) {
      Series s = series_of(points, metric);
      if (s.x.size() < 2) continue;  // the test at the end is no curve
      s.name = runs.size() > 1 ? fmt::format("{} {}", r.info.name, metric) : metric;
      own.push_back(std::string(metric) == "train_loss" ? smoothed(s, 8) : std::move(s));
    }
    if (runs.size() > many && own.size() > 1) own.erase(own.begin(), own.end() - 1);
    for (Series& s : own) all.push_back(std::move(s));
  }
  return all;
}

std::string hash_of(const RunFacts& r) {
  return r.info.summary.is_object() ? r.info.summary.value("weights_sha256", std::string("-")) : "-";
}

// What was evaluated at the end of any of them on this part, the loss first: "loss", "mae", "r2", ...
std::vector<std::string> evaluated_at_the_end(const std::vector<RunFacts>& runs, const std::string& part) {
  std::vector<std::string> names;
  for (const char* first : {"loss", "accuracy"})
    for (const RunFacts& r : runs)
      if (r.info.summary.contains(part + first) && std::ranges::find(names, first) == names.end())
        names.emplace_back(first);
  for (const RunFacts& r : runs)
    for (const auto& [key, value] : r.info.summary.items())
      if (key.starts_with(part) && value.is_number() &&
          std::ranges::find(names, key.substr(part.size())) == names.end())
        names.push_back(key.substr(part.size()));
  return names;
}

std::string result_cell(const RunFacts& r, const std::string& key) {
  if (!r.info.summary.contains(key) || !r.info.summary.at(key).is_number()) return "-";
  return number_text(r.info.summary.at(key).get<double>());
}

void print_one(const RunFacts& r) {
  const auto line = [](const std::string& what, const std::string& value) {
    const int hanging = value.find(' ') == value.npos ? 2 : 19;  // a hash needs the line
    fmt::print("{}", for_terminal(1, fmt::format("{:<18} {}\n", what, value), hanging));
  };
  const auto number = [&](const char* key, const char* format) {
    line(key, summary_cell(r.info.summary, key, format));
  };
  line("run", r.info.folder.path);
  line("model", r.model);
  line("started (UTC)", started_text(r));
  number("steps", "{:.0f}"), number("epochs", "{:.2f}"), number("seconds", "{:.1f}"), number("samples_per_s", "{:.0f}");
  number("peak_share", "{:.2f}"), number("train_loss", "{:.4f}");
  for (const char* part : {"val_", "test_"})
    for (const std::string& name : evaluated_at_the_end({r}, part)) line(part + name, result_cell(r, part + name));
  number("tested_step", "{:.0f}");
  line("best", r.best ? fmt::format("{} at step {} ({}): what eval and predict use", best_text(r), r.best->step,
                                    rule_of_best(r.best->metric))
                      : "-");
  line("state", r.state);
  line("weights sha256", hash_of(r));
}

// What differed, a run a line, or a setting a line where that is narrower.
std::string differences_text(const std::vector<RunFacts>& runs, const std::vector<DifferingKey>& differing) {
  if (differing.empty()) return "the recipes do not differ\n";
  std::vector<std::string> names{"what differed"};
  for (const DifferingKey& d : differing) names.push_back(d.key);
  TextTable table(names);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::vector<std::string> cells{runs[i].info.name};
    for (const DifferingKey& d : differing) cells.push_back(brief(d.values[i]));
    table.add(cells);
  }
  const TextTable other = table.transposed();
  return table.width() > terminal_columns(1) && other.width() < table.width() ? other.text() : table.text();
}

// Results as measured on the test part, or on the validation part where none has another.
std::string results_text(const std::vector<RunFacts>& runs) {
  const bool tested = !evaluated_at_the_end(runs, "test_").empty();
  const std::string part = tested ? "test_" : "val_";
  const std::vector<std::string> metrics = evaluated_at_the_end(runs, part);
  std::vector<std::string> names{"result", "steps", "epochs", "train loss"};
  for (const std::string& name : metrics) names.push_back(name == "loss" ? (tested ? "test loss" : "val loss") : name);
  names.insert(names.end(), {"best", "samples/s", "seconds", "state", "weights"});
  TextTable table(names);
  for (const RunFacts& r : runs) {
    const Json& s = r.info.summary;
    std::vector<std::string> cells{r.info.name, summary_cell(s, "steps", "{:.0f}"), summary_cell(s, "epochs", "{:.2f}"),
                                   summary_cell(s, "train_loss", "{:.4f}")};
    for (const std::string& name : metrics) cells.push_back(result_cell(r, part + name));
    cells.insert(cells.end(), {best_text(r), summary_cell(s, "samples_per_s", "{:.0f}"),
                               summary_cell(s, "seconds", "{:.1f}"), r.state, hash_of(r).substr(0, 8)});
    table.add(cells);
  }
  table.drop_empty_columns();
  if (!is_terminal(1)) return table.text();
  return table.text(terminal_columns(1), {"samples/s", "weights", "epochs", "steps", "seconds", "train loss", "state",
                                          "perplexity", "log_loss", "rmse", "f1", "auc"});
}

// The one of several runs with the best value, where all were judged by the same metric.
std::string best_of_all(const std::vector<RunFacts>& runs) {
  const RunFacts* best = nullptr;
  for (const RunFacts& r : runs) {
    if (!r.best || r.best->metric != runs[0].best->metric) return "";
    const std::string metric = r.best->metric.substr(r.best->metric.find('_') + 1);
    const bool higher = metric_named(metric)->higher_is_better();
    if (!best || (higher ? r.best->value > best->best->value : r.best->value < best->best->value)) best = &r;
  }
  return fmt::format("best {}: {} ({} at step {})\n", best->best->metric, best->info.name, best_text(*best),
                     best->best->step);
}

// Of several: what differed, what came of it, and whose weights are the same bits.
void print_several(const std::vector<RunFacts>& runs, const std::vector<DifferingKey>& differing) {
  fmt::print("{}\n{}\n{}", differences_text(runs, differing), results_text(runs), best_of_all(runs));
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
  add_runs_explain(verb);
}

}  // namespace echelon::cli
