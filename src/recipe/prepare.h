#pragma once
// Everything a run needs, built from its recipe before the first step: data sets opened, the model's graph made for the
// data's shapes, steps counted. Whatever is wrong is found here, and all of it at once (law 6): `echelon check` prints
// the problems, `echelon train` refuses to start while there is any.

#include <memory>
#include <string>
#include <vector>

#include "data/loader.h"
#include "data/open.h"
#include "models/model.h"
#include "parallel/metrics/metric.h"
#include "recipe/recipe.h"

namespace echelon {

struct PreparedRun {
  Recipe recipe;
  bool described = false;   // samples cannot be asked for: only what they are is known
  data::DatasetInfo plain;  // the training samples before any transform
  data::DatasetPtr train;   // shuffled, unless its samples continue each other or stay with their worker
  data::PartitionSpec partition;
  // What evaluations look at while it trains: null if the recipe has no such part, or train.evaluate is false.
  data::DatasetPtr validation;
  // With a validation part it is looked at once, at the end, and may be null. Without one it takes its place, and is
  // null only if train.evaluate is false.
  data::DatasetPtr test;
  std::unique_ptr<const models::Model> model;
  std::vector<data::BatchPhase> batches;  // the global batch, from which step on
  std::int64_t total_steps = 0;           // unless something stops the run earlier
  std::vector<Metric> metrics;            // what evaluations report, the monitored one included
  std::optional<Metric> monitor;          // none: accuracy where the task has one, else the loss

  const data::DatasetPtr& evaluated() const { return validation ? validation : test; }  // while it trains
  const char* evaluated_part() const { return validation ? "val" : "test"; }            // as metrics begin with

  // Parts that a run needs, each made from the above.
  data::LoaderOptions loader_options() const;
  data::BatchSequence batch_sequence() const;  // which samples each step uses
  Schedule schedule() const { return schedule(total_steps); }
  Schedule schedule(std::int64_t total_steps) const;    // of a run of another length
  std::int64_t steps_of(const TrainSpec& train) const;  // how many make the length it says
  // The step after which the first `duration` of the run is over; at least 1. 0 if the duration is 0.
  std::int64_t steps_in(const Duration& duration) const;
};

// Loads the recipe and builds it. What could not be built is null; then there are problems. BadInput only for a recipe
// that is missing or not TOML. `system` as in load_options. `disk` must outlive the result.
PreparedRun prepare_run(Disk& disk, const std::string& path, const std::vector<std::string>& overrides,
                        Problems& problems, const data::DataPlaces& places = data::usual_places(),
                        const std::string& system = "");

// The same from options that are loaded already.
PreparedRun prepare_run(Disk& disk, Recipe recipe, Problems& problems,
                        const data::DataPlaces& places = data::usual_places());

// The same without the data: `plain` says what the samples are (data/description.h), and asking for one is a BadInput.
// For what needs the model and the meaning of its answers alone.
PreparedRun prepare_described_run(Disk& disk, const std::string& path, const data::DatasetInfo& plain,
                                  Problems& problems);

// The samples of a data set as a model sees them.
models::InputSpec input_spec(const data::DatasetInfo& info);

}  // namespace echelon
