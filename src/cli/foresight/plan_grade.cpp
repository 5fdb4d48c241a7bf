// `echelon plan grade`: what was predicted for the runs of this machine, beside what came of it.

#include <cmath>
#include <map>

#include "base/text.h"
#include "cli/foresight/plan_rank.h"
#include "cli/report.h"
#include "cli/runs/run_table.h"
#include "world/os/disk.h"

namespace echelon::cli {

namespace {

std::string error_text(double share) { return fmt::format("{:+.1f} %", 100 * share); }

void print_grade(bool json, std::int64_t most) {
  const auto disk = make_real_disk();
  const std::vector<foresight::Outcome> all = foresight::load_outcomes(*disk, foresight::usual_folder());
  const foresight::Grade grade = foresight::grade(all);
  std::map<std::string, std::vector<foresight::Outcome>> groups;
  for (const foresight::Outcome& o : all) groups[o.model + ", " + o.kind].push_back(o);
  if (json) {
    Json out{{"runs", grade.runs},           {"median_error", grade.median}, {"ninetieth_error", grade.ninetieth},
             {"memory_error", grade.memory}, {"outcomes", Json::array()},    {"groups", Json::object()}};
    for (const foresight::Outcome& o : all) out["outcomes"].push_back(foresight::to_json(o));
    for (const auto& [name, outcomes] : groups) {
      const foresight::Grade g = foresight::grade(outcomes);
      out["groups"][name] = {{"runs", g.runs}, {"median_error", g.median}, {"ninetieth_error", g.ninetieth}};
    }
    fmt::print("{}\n", out.dump());
    return;
  }
  if (all.empty()) {
    fmt::print(
        "no run of this machine was predicted yet. `echelon plan recipes/demo.toml --workers 2` measures a network; "
        "every run of it is predicted from then on\n");
    return;
  }
  TextTable runs({"run", "model", "plan", "workers", "predicted", "measured", "error", "memory", "sent"});
  const std::size_t skip =
      all.size() > static_cast<std::size_t>(most) ? all.size() - static_cast<std::size_t>(most) : 0;
  for (std::size_t i = skip; i < all.size(); ++i) {
    const foresight::Outcome& o = all[i];
    runs.add(
        {o.run, o.model, o.plan, std::to_string(o.workers), human_duration(o.predicted), human_duration(o.measured),
         error_text(o.error()),
         o.measured_bytes > 0 && o.predicted_bytes > 0 ? error_text(o.predicted_bytes / o.measured_bytes - 1) : "-",
         o.measured_sent > 0 && o.predicted_sent > 0 ? error_text(o.predicted_sent / o.measured_sent - 1) : "-"});
  }
  fmt::print("{}\n", runs.text());
  TextTable table({"network and kind of plan", "runs", "median error", "90th percentile"});
  for (const auto& [name, outcomes] : groups) {
    const foresight::Grade g = foresight::grade(outcomes);
    table.add({name, std::to_string(g.runs), fmt::format("{:.1f} %", 100 * g.median),
               fmt::format("{:.1f} %", 100 * g.ninetieth)});
  }
  table.add({"all", std::to_string(grade.runs), fmt::format("{:.1f} %", 100 * grade.median),
             fmt::format("{:.1f} %", 100 * grade.ninetieth)});
  fmt::print("{}", table.text());
  for (const auto& [name, outcomes] : groups)
    if (const double factor = foresight::correction_of(all, outcomes.front().kind, outcomes.front().model);
        std::abs(factor - 1) > 0.02)
      fmt::print("{}: predictions are multiplied by {:.2f} now\n", name, factor);
}

}  // namespace

void add_plan_grade(Verb plan) {
  const Verb verb = plan.add_subcommand("grade", "Predicted beside measured, for all runs of this machine");
  struct Settings {
    bool json = false;
    std::int64_t most = 30;
  };
  auto s = std::make_shared<Settings>();
  verb.add_option("--most", s->most, "Runs to print, the last ones").show_default();
  verb.add_flag("--json", s->json, "Print one JSON object");
  verb.footer("Example:\n  echelon plan grade");
  verb.action([s] { print_grade(s->json, s->most); });
}

}  // namespace echelon::cli
