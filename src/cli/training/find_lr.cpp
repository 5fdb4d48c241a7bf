#include "cli/training/find_lr.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/runs/run_table.h"
#include "run/training/find_rate.h"
#include "track/curve.h"
#include "world/os/host.h"

namespace echelon::cli {

void find_lr(Disk& disk, const TrainSettings& s, const PreparedRun& prepared, const TrainingJob& job) {
  if (job.composition) bad_input("--find-lr trains on one worker: leave out --system");
  const RateSearch search;
  if (!s.json) fmt::print("{} steps with rates from {:g} to {:g}\n", search.steps, search.least, search.most);
  LocalTeam alone(s.world.cores > 0 ? s.world.cores : available_cores());
  const RateTrial trial = find_rate(job, search, alone.team);

  // What is far above the first losses would press the rest of the curve flat.
  const double most =
      trial.losses.empty()
          ? 0
          : 2 * *std::ranges::max_element(std::span(trial.losses).first(std::min<std::size_t>(5, trial.losses.size())));
  Series losses{"training loss", {}, {}};
  for (std::size_t i = 0; i < trial.rates.size(); ++i) {
    losses.x.push_back(std::log10(trial.rates[i]));
    losses.y.push_back(trial.losses[i] > most ? std::nan("") : trial.losses[i]);
  }
  std::vector<Series> series{losses, smoothed(losses, 6)};
  series[1].name = "smoothed";
  const PlotOptions plot{.title = "Loss over the learning rate", .x_label = "log10 of the rate", .y_label = "loss"};
  const std::string file = s.svg.empty() ? std::filesystem::path(s.recipe).stem().string() + "-find-lr.svg" : s.svg;
  write_named_file(disk, file, plot_svg(series, plot));
  if (s.json) {
    nlohmann::ordered_json j{{"recipe", s.recipe}, {"rates", trial.rates},       {"losses", trial.losses},
                             {"svg", file},        {"diverged", trial.diverged}, {"lr", prepared.recipe.lr}};
    j["suggested_lr"] = trial.suggested ? nlohmann::ordered_json(*trial.suggested) : nlohmann::ordered_json();
    fmt::print("{}\n", j.dump());
    return;
  }
  fmt::print("{}", plot_text(series, plot, std::min(100, terminal_columns(1)), 18, is_terminal(1)));
  if (trial.diverged)
    fmt::print("the loss grew from a rate of {:.2g} on; higher ones were not tried\n",
               trial.rates.empty() ? search.least : trial.rates.back());
  if (trial.suggested)
    fmt::print(
        "suggested: optim.lr = {:.2g}, a tenth of the rate with the lowest loss (the recipe has {:g})\n"
        "the curve is in {}\n  echelon train {} --set optim.lr={:.2g}\n",
        *trial.suggested, prepared.recipe.lr, file, s.recipe, *trial.suggested);
  else
    fmt::print("no rate lowered the loss; the curve is in {}\n", file);
}

}  // namespace echelon::cli
