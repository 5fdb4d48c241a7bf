#include "cli/foresight/plan_sweep.h"

#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "cli/foresight/plan_rank.h"
#include "cli/report.h"
#include "cli/runs/run_table.h"
#include "foresight/sweep.h"
#include "track/curve.h"
#include "world/os/disk.h"
#include "world/os/host.h"

namespace echelon::cli {

namespace {

std::vector<Series> curves_of(const foresight::Sweep& sweep) {
  Series predicted{"predicted", {}, {}}, ideal{"as many times one worker", {}, {}};
  const foresight::SweepPoint& first = sweep.points.front();
  const double each = first.best.prediction.samples_per_second() / first.best.efficiency / first.workers;
  for (const foresight::SweepPoint& p : sweep.points) {
    predicted.x.push_back(std::log2(p.workers)), ideal.x.push_back(std::log2(p.workers));
    predicted.y.push_back(p.best.prediction.samples_per_second());
    ideal.y.push_back(each * p.workers);
  }
  return {ideal, predicted};
}

}  // namespace

void sweep_workers(const SweepSettings& s, Foreseen& foreseen) {
  const auto [first, last] = foresight::read_sweep(s.sweep);
  const auto disk = make_real_disk();
  foresight::Sweep sweep;
  double alone = 0;
  for (const int workers : foresight::worker_counts(first, last)) {
    std::vector<std::string> overrides = s.flags.overrides;
    PreparedRun prepared = foreseen.prepare(overrides);
    if (s.weak && workers > 1) {
      overrides.push_back(fmt::format("train.batch={}", prepared.recipe.train.batch * workers));
      overrides.push_back(fmt::format("train.shards={}", prepared.recipe.train.shards * workers));
      prepared = foreseen.prepare(overrides);
    }
    foreseen.measure(prepared, workers);
    foresight::Ranking ranking =
        foresight::rank_plans(prepared, foreseen.platform(workers),
                              {.memory = s.memory, .most_replayed = 6, .outcomes = &foreseen.outcomes()});
    if (ranking.plans.empty()) continue;
    if (alone == 0) alone = ranking.alone / static_cast<double>(prepared.recipe.train.batch);  // seconds of a sample
    foresight::SweepPoint point{.workers = workers, .best = std::move(ranking.plans.front())};
    point.batch = static_cast<double>(prepared.recipe.train.batch);
    point.shards = static_cast<int>(prepared.recipe.train.shards);
    const foresight::Prediction& p = point.best.prediction;
    point.best.efficiency = alone * p.samples_per_second() / workers;
    // As many samples as the recipe asks for, whatever the batch.
    const double steps = static_cast<double>(prepared.total_steps);
    point.hours = steps * p.seconds / 3600;
    point.core_hours = point.hours * workers;
    sweep.points.push_back(std::move(point));
  }
  if (sweep.points.empty()) bad_input("no plan fits with any number of workers from {} to {}", first, last);
  foresight::find_bend(sweep);
  const std::vector<Series> curves = curves_of(sweep);
  const PlotOptions plot{.title = "samples a second", .x_label = "workers (log2)", .y_label = "", .log_y = true};
  if (!s.svg.empty()) write_file_atomically(*disk, s.svg, plot_svg(curves, plot));
  if (s.json) {
    Json json{{"recipe", s.flags.recipe}, {"points", Json::array()}, {"bend", sweep.bend}, {"why", sweep.why}};
    for (const foresight::SweepPoint& p : sweep.points) {
      Json point = to_json(p.best);
      point.erase("ranks"), point.erase("parts");
      point["workers"] = p.workers, point["hours"] = p.hours, point["core_hours"] = p.core_hours;
      json["points"].push_back(std::move(point));
    }
    fmt::print("{}\n", json.dump());
    return;
  }
  TextTable table({"workers", "plan", "step", "samples/s", "efficiency", "memory", "whole run", "core hours"});
  for (const foresight::SweepPoint& p : sweep.points)
    table.add({std::to_string(p.workers), to_string(p.best.prediction.plan), human_duration(p.best.prediction.seconds),
               human_count(p.best.prediction.samples_per_second()), fmt::format("{:.0f} %", 100 * p.best.efficiency),
               human_bytes(static_cast<double>(p.best.prediction.most_bytes())), human_duration(3600 * p.hours),
               fmt::format("{:.3g}", p.core_hours)});
  fmt::print("{}\n", table.text());
  if (sweep.points.size() > 1)
    fmt::print("{}\n\n", plot_text(curves, plot, std::min(100, terminal_columns(1)), 16, is_terminal(1)));
  fmt::print("{}\n", sweep.why);
  if (!s.svg.empty()) fmt::print("wrote {}\n", s.svg);
}

Allowed read_allowed(const std::string& text) {
  Allowed allowed;
  for (const std::string_view word : split(text, ',')) {
    if (word.empty()) continue;
    if (word == "async")
      allowed.async = true;
    else if (word == "local")
      allowed.local = true;
    else if (word == "compressed")
      allowed.compressed = true;
    else
      bad_input("--allow {}: the words are async, local and compressed, not '{}'", text, word);
  }
  return allowed;
}

std::vector<foresight::SystemEstimate> estimate_systems(const PreparedRun& prepared,
                                                        const foresight::Platform& platform, const Allowed& allowed,
                                                        const foresight::Ranking& ranking) {
  if (!allowed.any() || platform.ranks() < 2 || ranking.plans.empty()) return {};
  const auto disk = make_real_disk();
  return foresight::estimate_systems(*disk, prepared, platform, allowed, ranking.plans.front().prediction);
}

Json to_json(const std::vector<foresight::SystemEstimate>& systems) {
  Json all = Json::array();
  for (const foresight::SystemEstimate& e : systems)
    all.push_back({{"system", e.name},
                   {"kind", e.kind},
                   {"seconds", e.seconds},
                   {"samples_factor", e.more_samples},
                   {"seconds_to_the_same", e.seconds_to_the_same()},
                   {"sent_bytes", e.sent},
                   {"estimate", true},
                   {"source", e.source}});
  return all;
}

void print_systems(const std::vector<foresight::SystemEstimate>& systems) {
  if (systems.empty()) return;
  fmt::print(
      "\nEstimates of systems whose result is another one: a step, and a step times the samples that the system is "
      "taken to need for the same accuracy\n");
  TextTable table({"system", "changes", "step", "samples needed", "to the same accuracy", "sent", "from"});
  for (std::size_t i = 0; i < std::min<std::size_t>(12, systems.size()); ++i) {
    const foresight::SystemEstimate& e = systems[i];
    table.add({e.name, e.kind, human_duration(e.seconds), fmt::format("x {:.2f}", e.more_samples),
               human_duration(e.seconds_to_the_same()), human_bytes(e.sent), e.source});
  }
  fmt::print("{}", table.text());
}

}  // namespace echelon::cli
