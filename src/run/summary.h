#pragma once
// What a run was like, once it has ended.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "parallel/engine.h"
#include "run/events.h"

namespace echelon {

// Where the time of one rank went.
struct RankSummary {
  double input = 0;  // seconds waited for samples
  RankTimes times;
};

struct RunSummary {
  std::int64_t steps = 0;
  double epochs = 0;
  double train_loss = 0;  // mean over the last epoch's steps so far
  double train_accuracy = -1;
  std::optional<Evaluation> validation = {};  // the last one
  // On the test part. Of a run with a validation part: of the weights that were best on that. Else of the last ones.
  std::optional<Evaluation> test = {};
  std::int64_t tested_step = 0;     // of those weights
  std::int64_t best_step = 0;       // of the best evaluation; 0: there was none
  double best = 0;                  // the monitored metric of it
  std::string monitor = "";         // its name: "val_accuracy"
  double samples_per_s = 0;         // while training: evaluations and saves not counted
  double seconds = 0;               // in this process
  double waited_for_input = 0;      // share of the training time
  double bytes = -1;                // sent as messages by all ranks in their steps; -1: not counted
  std::vector<Figure> system = {};  // what became of the exchanges (parallel/exchange.h)
  double peak_share = 0;
  std::string weights_sha256 = {};
  // "end", "target", "patience", "signal", "request"; "resize": others go on from the kept state
  std::string stopped_by;
  std::string not_saved = "";           // why the last checkpoint is missing; empty if it is there or none was wanted
  std::vector<RankSummary> ranks = {};  // on rank 0
  int working = 1;  // ranks that had samples: exact training has work for at most as many as a batch has shards
};

}  // namespace echelon
