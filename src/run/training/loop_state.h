#pragma once
// What a checkpoint remembers of a training besides tensors. Private to the training's own files.

#include <map>
#include <optional>
#include <string>

#include "run/training/score.h"
#include "run/training/training.h"

namespace echelon {

Json to_json(const Evaluation& e);
Evaluation evaluation_from(const Json& j);

struct Training::LoopState {
  EpochSums epoch;
  std::optional<Score> best;
  std::int64_t best_step = 0;
  std::int64_t evaluations_since_best = 0;  // since the monitored metric was last better
  Plateau plateau;
  double rate_factor = 1;          // of the schedule's rate, set by hand (track/control.h)
  std::int64_t replayed = 0;       // lines of another run's journal that were carried out
  bool evaluation_due = false;     // after the last step; a signal may have come in between
  std::map<Rank, int> errors;      // of ranks whose results were wrong, how often
  std::string stopped_by;          // why the run has ended; empty while it goes on
  std::optional<Evaluation> test;  // of a run with a validation part, once it has ended
  std::int64_t tested_step = 0;

  Json to_json() const;
  void read(const Json& j);
};

}  // namespace echelon
