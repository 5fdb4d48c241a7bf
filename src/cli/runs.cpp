// `echelon runs`: what has been trained here; one run in detail; two beside each other.

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/verbs.h"
#include "recipe/differences.h"
#include "recipe/toml.h"
#include "track/curve.h"
#include "track/run.h"
#include "world/os/host.h"

namespace echelon::cli {

namespace {

std::string field(const Json& summary, const char* key, const char* format) {
  if (!summary.is_object() || !summary.contains(key) || !summary[key].is_number()) return "-";
  return fmt::format(fmt::runtime(format), summary[key].get<double>());
}

std::string state_of(const RunInfo& run) {
  return run.summary.is_object() ? run.summary.value("stopped_by", std::string("?")) : "not ended";
}

Json run_to_json(const RunInfo& run) {
  Json j{{"run_dir", run.folder.path}, {"name", run.folder.name()}, {"summary", run.summary}};
  if (run.last) j["last_step"] = run.last->step;
  return j;
}

void list_runs(const std::string& root, bool json) {
  const auto disk = make_real_disk();
  std::vector<RunInfo> runs;
  if (disk->is_directory(root)) runs = list_runs(*disk, root);
  if (json) {
    Json all = Json::array();
    for (const RunInfo& r : runs) all.push_back(run_to_json(r));
    fmt::print("{}\n", all.dump());
    return;
  }
  if (runs.empty()) {
    fmt::print("no runs in {}/ yet. Try: echelon train recipes/demo.toml\n", root);
    return;
  }
  fmt::print("{:<24} {:>9} {:>8} {:>10} {:>10} {:>10}  {}\n", "run", "steps", "epochs", "train loss", "test loss",
             "accuracy", "ended by");
  for (const RunInfo& r : runs)
    fmt::print("{:<24} {:>9} {:>8} {:>10} {:>10} {:>10}  {}\n", r.folder.name(),
               r.summary.is_object() ? field(r.summary, "steps", "{:.0f}")
               : r.last              ? std::to_string(r.last->step)
                                     : "0",
               field(r.summary, "epochs", "{:.2f}"), field(r.summary, "train_loss", "{:.4f}"),
               field(r.summary, "test_loss", "{:.4f}"), field(r.summary, "test_accuracy", "{:.4f}"), state_of(r));
}

// The curves worth showing: training and test loss of each run.
std::vector<Series> loss_curves(Disk& disk, const std::vector<RunFolder>& folders) {
  std::vector<Series> all;
  for (const RunFolder& f : folders) {
    const auto points = read_metrics(disk, f.metrics()).points;
    for (const char* metric : {"train_loss", "test_loss"}) {
      Series s = series_of(points, metric);
      if (s.x.empty()) continue;
      s.name = folders.size() > 1 ? fmt::format("{} {}", f.name(), metric) : metric;
      all.push_back(std::string(metric) == "train_loss" ? smoothed(s, 8) : std::move(s));
    }
  }
  return all;
}

std::string brief(const std::string& value) { return display_width(value) > 22 ? fit(value, 22) : value; }

std::vector<Difference> recipe_differences(Disk& disk, const std::vector<RunFolder>& two) {
  auto recipe = [&](const RunFolder& f) {
    return parse_toml(read_text(disk, f.recipe(), TomlLimits{}.bytes), f.recipe());
  };
  return differences(recipe(two[0]), recipe(two[1]));
}

void show_runs(const std::string& root, const std::vector<std::string>& names, const std::string& svg, bool json) {
  const auto disk = make_real_disk();
  std::vector<RunFolder> folders;
  for (const std::string& n : names) folders.push_back(open_run(*disk, root, n));
  const std::vector<Series> curves = loss_curves(*disk, folders);
  const PlotOptions options{.title = "loss", .x_label = "step", .y_label = "", .log_y = true};
  if (!svg.empty()) write_file_atomically(*disk, svg, plot_svg(curves, options));
  if (json) {
    Json all = Json::array();
    for (const RunFolder& f : folders) all.push_back(run_to_json(read_run(*disk, f)));
    if (folders.size() == 2)
      for (const Difference& d : recipe_differences(*disk, folders))
        all[0]["recipe"][d.key] = d.first, all[1]["recipe"][d.key] = d.second;
    fmt::print("{}\n", names.size() == 1 ? all[0].dump() : all.dump());
    return;
  }
  std::vector<RunInfo> runs;
  for (const RunFolder& f : folders) runs.push_back(read_run(*disk, f));
  fmt::print("{:<18}", "");
  for (const RunInfo& r : runs) fmt::print(" {:>22}", r.folder.name());
  fmt::print("\n");
  constexpr const char* rows[][2] = {{"steps", "{:.0f}"},      {"epochs", "{:.2f}"},        {"train_loss", "{:.4f}"},
                                     {"test_loss", "{:.4f}"},  {"test_accuracy", "{:.4f}"}, {"samples_per_s", "{:.0f}"},
                                     {"peak_share", "{:.2f}"}, {"seconds", "{:.1f}"}};
  for (const auto& [key, format] : rows) {
    fmt::print("{:<18}", key);
    for (const RunInfo& r : runs) fmt::print(" {:>22}", field(r.summary, key, format));
    fmt::print("\n");
  }
  fmt::print("{:<18}", "ended by");
  for (const RunInfo& r : runs) fmt::print(" {:>22}", state_of(r));
  fmt::print("\n{:<18}", "weights sha256");
  for (const RunInfo& r : runs)
    fmt::print(" {:>22}",
               r.summary.is_object() ? r.summary.value("weights_sha256", std::string("-")).substr(0, 16) : "-");
  if (runs.size() == 2 && runs[0].summary.is_object() && runs[1].summary.is_object())
    fmt::print("   {}", runs[0].summary.value("weights_sha256", "a") == runs[1].summary.value("weights_sha256", "b")
                            ? "the same bits"
                            : "different");
  fmt::print("\n");
  if (runs.size() == 2)
    for (const Difference& d : recipe_differences(*disk, folders))
      fmt::print("{:<18} {:>22} {:>22}\n", d.key, brief(d.first), brief(d.second));
  fmt::print("\n");
  if (!curves.empty())
    fmt::print("{}\n", plot_text(curves, options, std::min(100, terminal_columns(1)), 18, is_terminal(1)));
  if (!svg.empty()) fmt::print("wrote {}\n", svg);
}

}  // namespace

void add_runs(Verb program) {
  const Verb verb = program.add_subcommand("runs", "List runs, show one, compare two");
  verb.require_subcommand(1);
  verb.footer(
      "Examples:\n  echelon runs list\n  echelon runs show demo-1 --svg curve.svg\n  echelon runs compare demo-1 "
      "demo-2");
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
  part("list", "All runs", "echelon runs list").action([s] { list_runs(s->root, s->json); });
  const Verb showing = part("show", "One run: result and curve", "echelon runs show demo-1 --svg curve.svg");
  showing.add_option("run", s->names, "A run's folder, or its name in runs/").required().exactly(1);
  const Verb comparing = part("compare", "Two runs beside each other", "echelon runs compare demo-1 demo-2");
  comparing.add_option("runs", s->names, "Two runs").required().exactly(2);
  for (const Verb p : {showing, comparing}) {
    p.add_option("--svg", s->svg, "Also write the curve as an SVG file");
    p.action([s] { show_runs(s->root, s->names, s->svg, s->json); });
  }
}

}  // namespace echelon::cli
