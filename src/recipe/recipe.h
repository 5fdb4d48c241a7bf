#pragma once
// One run, as its recipe describes it: the tables of a TOML file, read into types. Plain data; what can be built from
// it (data sets, a model, an update rule) is built by recipe/prepare.h.
//
//   [model]     name and the network's own settings (models/zoo.h), or layers written out
//   [data]      where the samples come from (data/)
//   [optim]     the update rule (optim/optim.h)
//   [schedule]  how learning rate and batch change (optim/schedule.h)
//   [loss]      what the network is trained to make small (models/loss.h)
//   [metrics]   what evaluations report besides (parallel/metrics/metric.h)
//   [train]     how long, how much at a time, when to stop (below)
//   [rule] [exchange] [when] [sync] [codec] [order]    how several workers train together (parallel/axes.h)
//   [plan]      where the pieces of a split model run (plan/spec.h)

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "optim/optim.h"
#include "optim/schedule.h"
#include "recipe/load.h"
#include "recipe/start.h"

namespace echelon {

struct TrainSpec {
  // How long at most: one of the two is more than 0.
  std::int64_t epochs = 0, steps = 0;
  // Samples in a step, on all cores and workers together, and the logical shards that they fall to. The shards belong
  // to the result (batch norm sees one shard at a time; sums are taken in the order of shards), so they never depend on
  // the machine: a core that has more than one runs them one after the other, which is gradient accumulation.
  std::int64_t batch = 64, shards = 1;
  bool shards_derived = false;  // the recipe did not say
  std::int64_t accumulate = 1;  // what batch and shards were multiplied with already
  std::uint64_t seed = 1;
  bool drop_partial = false;  // leave out the last batch of an epoch if it is not full
  bool evaluate = true;       // whether there are data to evaluate on
  // Which evaluation is the best: by this metric ("val_f1"; empty: accuracy where the task has one, else the loss), and
  // among equals by the loss.
  std::string monitor;
  // When to stop earlier: at a result of an evaluation, or after so many of them without a better one.
  std::optional<double> target_accuracy, target_loss;
  std::int64_t patience = 0;  // 0: never
  // How often; an amount of 0 means at the end only.
  Duration eval_every{1, true}, checkpoint_every{1, true};
  std::int64_t keep = 3;       // checkpoints, besides the best
  std::int64_t log_every = 0;  // steps between lines of metrics; 0: about a hundred an epoch
};

struct Recipe {
  std::string path, title;
  std::vector<std::string> notes;  // what was derived or dropped: one sentence each, to be shown
  Options tree;                    // all of it, resolved: extended, overridden, derived values filled in
  Options model, data, optim;      // tables that other rooms read
  // How workers train together: the system's name and its tables, which parallel/ reads. Empty tables are each
  // axis' default; all of them empty is plain synchronous training.
  std::string system;
  Options rule, exchange, when, sync, codec, order;
  Options plan;  // empty: every worker has the whole model
  std::string model_name;
  std::optional<StartSpec> start;                  // what the weights begin with; none: random numbers
  Options loss;                                    // empty: what suits the targets
  std::optional<std::vector<std::string>> report;  // metrics by name; none: the usual ones
  double lr = 0.1;
  std::vector<std::pair<std::string, double>> rates;  // [optim.rates]: pattern of weights -> factor of the rate
  ScheduleSpec schedule;
  TrainSpec train;
};

// Reads the table [train].
TrainSpec read_train(OptionReader& table);

// Reads everything but [data] and the model's own settings, which need the disk (recipe/prepare.h). Problems are added;
// the recipe is complete in any case, with defaults where something was wrong.
Recipe read_recipe(const std::string& path, LoadedOptions loaded, Problems& problems);

// The recipe as TOML, with all that was derived: reading it again gives the same run whatever the defaults are then.
std::string resolved_toml(const Recipe& recipe);

// Puts the hash of the source's weights into the recipe: resolved, it says with which weights it began.
void record_start(Recipe& recipe, const std::string& sha256);

// A new one each time: it holds no state. The recipe must have been read without problems.
Optim make_optim(const Recipe& recipe);

// The shards of a batch when the recipe does not say: the largest power of two up to 8 that divides the batch and
// leaves at least 32 samples in each; two for any even batch. Smaller shards cost speed (LeNet-5 at batch 64 on one
// core: 6 % with 2 shards, 40 % with 8), fewer shards leave cores without work.
std::int64_t derived_shards(std::int64_t batch);

// "batch 64 = 8 shards of 8 samples; 2 cores run 4 each, one after the other"
std::string describe_batch(std::int64_t batch, std::int64_t shards, int cores);

}  // namespace echelon
