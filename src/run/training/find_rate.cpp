#include "run/training/find_rate.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "parallel/step/not_finite.h"

namespace echelon {

namespace {

constexpr double past = 0.85;      // of a smoothed loss: the share of what was before
constexpr double grown_by = 4;     // times the lowest smoothed loss: far enough
constexpr std::size_t settle = 5;  // steps at the lowest rates: what the loss is at first

// An average over the last losses, without the bias towards the first.
class SmoothLoss {
 public:
  double add(double loss) {
    mean_ = past * mean_ + (1 - past) * loss;
    weight_ *= past;
    return mean_ / (1 - weight_);
  }

 private:
  double mean_ = 0, weight_ = 1;
};

}  // namespace

std::optional<double> suggest_rate(std::span<const double> rates, std::span<const double> losses) {
  invariant(rates.size() == losses.size(), "each rate has a loss");
  std::vector<double> smooth;
  SmoothLoss average;
  for (const double loss : losses) smooth.push_back(average.add(loss));
  if (losses.size() < 2 * settle) return {};
  double start = 0;
  for (const double loss : losses.first(settle)) start += loss / static_cast<double>(settle);
  const auto lowest = std::ranges::min_element(smooth);
  if (!(*lowest < start - 0.01 * std::abs(start))) return {};
  return rates[static_cast<std::size_t>(lowest - smooth.begin())] / 10;
}

RateTrial find_rate(const TrainingJob& job, const RateSearch& search, Team& team,
                    const std::function<void(std::int64_t, double, double)>& progress) {
  invariant(team.world().size() == 1, "rates are searched for by one rank");
  const data::BatchSequence sequence(job.train->size(), job.batches, job.drop_partial);
  const auto engine = make_engine({.model = job.model,
                                   .make_optim = job.make_optim,
                                   .fields = job.train->fields(),
                                   .shards = job.shards,
                                   .seed = job.seed,
                                   .stragglers = {},
                                   .start = start_of(job)},
                                  sequence.largest_batch(), nullptr, team);
  data::LoaderOptions options{.seed = job.seed, .batches = job.batches, .drop_partial = job.drop_partial};
  engine->adapt(options);
  data::Loader loader(job.train, options);
  const auto rate_of = [&](std::int64_t step) {
    const double share = static_cast<double>(step) / static_cast<double>(std::max<std::int64_t>(1, search.steps - 1));
    return search.least * std::pow(search.most / search.least, share);
  };
  RateTrial trial;
  SmoothLoss average;
  double lowest = 0;
  try {
    engine->run({.from = 0,
                 .to = search.steps,
                 .loader = &loader,
                 .lr = rate_of,
                 .epoch = [](std::int64_t) { return 0.0; },
                 .asks_to_stop = [&] { return trial.diverged; },
                 .on_progress =
                     [&](const StepProgress& p) {
                       if (p.result.samples == 0) return;
                       const double rate = rate_of(p.step - 1), loss = p.result.loss;
                       trial.rates.push_back(rate);
                       trial.losses.push_back(loss);
                       const double smooth = average.add(loss);
                       const std::size_t done = trial.losses.size();
                       if (done == 1 || smooth < lowest) lowest = smooth;
                       trial.diverged = trial.diverged || (done > settle && lowest > 0 && smooth > grown_by * lowest);
                       if (progress) progress(p.step, rate, loss);
                     }});
  } catch (const NotFinite&) {
    trial.diverged = true;  // that is what high rates are for
  }
  engine->close();
  trial.suggested = suggest_rate(trial.rates, trial.losses);
  return trial;
}

}  // namespace echelon
