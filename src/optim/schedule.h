#pragma once
// How the learning rate and the batch change during a run: the [schedule] table of a recipe. Everything is a closed
// form of the step, so resuming needs no saved state; but for a plateau, which looks at results and is remembered by
// the training. Times are given in steps or in epochs.
//
//   [schedule]
//   name = "cosine"         # constant, step, cosine, polynomial, one_cycle, plateau
//   warmup_epochs = 5       # or warmup_steps: the rate rises in a straight line; fits any of them
//   final = 0.1             # cosine, polynomial: the last rate, as a share of optim.lr
//   power = 2.0             # polynomial
//   rise = 0.3              # one_cycle: the share of the run while the rate rises ...
//   start = 0.04            # ... from this share of optim.lr; it ends at `final`, both along half a cosine
//   patience = 3            # plateau: evaluations without a better result before the rate drops (optim/plateau.h);
//                           # also threshold, cooldown, least
//   drop = 0.1              # step: what the rate is multiplied with ...
//   every_epochs = 30       # ... and when; or every_steps, at_epochs = [30, 60], at_steps
//   [schedule.growth]       # grow the batch instead of, or besides, lowering the rate (Smith et al. 2017)
//   factor = 2
//   every_epochs = 10       # or every_steps
//   max_batch = 1024

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/options.h"
#include "optim/plateau.h"

namespace echelon {

struct Duration {
  double amount = 0;
  bool epochs = false;  // else steps
};

// Reads KEY_epochs or KEY_steps, whichever is there; both are a problem.
Duration read_duration(OptionReader& options, const std::string& key, Duration fallback = {});

struct Growth {
  std::int64_t factor = 1;  // 1: the batch stays
  Duration every = {};
  std::int64_t max_batch = 0;
};

struct ScheduleSpec {
  std::string name = "constant";
  Duration warmup = {};
  double final = 0, power = 1;
  double rise = 0.3, start = 0.04;  // one_cycle
  std::optional<PlateauSpec> plateau = {};
  double drop = 0.1;
  Duration every = {};            // step: amount 0 if `at` is given
  std::vector<Duration> at = {};  // step
  Growth growth = {};
};

// Reads all keys of the table; problems are added to the reader's, and the table is checked for unknown keys.
ScheduleSpec read_schedule(OptionReader& options);
std::vector<std::string> schedule_names();

class Schedule {
 public:
  // `steps_in(epochs)`: the number of steps that the first so many epochs (or parts of them) take.
  Schedule(const ScheduleSpec& spec, double base_lr, std::int64_t total_steps,
           const std::function<double(double)>& steps_in);

  double lr(std::int64_t step) const;  // of the step, counted from 0; the last rate beyond the end

 private:
  double shape(double step) const;  // the share of the base rate, warm-up aside

  ScheduleSpec spec_;
  double base_lr_, total_, warmup_;
  std::vector<double> drops_;  // the steps at which the rate drops
};

// From `step` on, batches of `batch` samples.
struct BatchStage {
  std::int64_t step = 0, batch = 1;
  bool operator==(const BatchStage&) const = default;
};

// The stages of a growing batch, the first at step 0. With `every` in epochs, a stage begins with an epoch. An epoch
// has `samples` samples, and a last, smaller batch if they do not come out even. A batch never exceeds an epoch.
std::vector<BatchStage> batch_stages(const Growth& growth, std::int64_t batch, std::int64_t samples);

}  // namespace echelon
