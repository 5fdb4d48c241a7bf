#pragma once
// What a checkpoint remembers of a training besides tensors. Private to the training's own files.

#include <optional>
#include <string>

#include "run/training.h"

namespace echelon {

struct Training::Memory {
  double epoch_loss = 0, epoch_correct = 0;  // sums over the terms of the epoch so far
  double epoch_terms = 0;
  std::optional<double> best_score;  // accuracy, or minus the loss: higher is better
  std::int64_t evaluations_since_best = 0;
  bool evaluation_due = false;  // after the last step; a signal may have come in between
  std::string stopped_by;       // why the run has ended; empty while it goes on

  Json to_json() const {
    Json j{{"epoch_loss", epoch_loss},         {"epoch_correct", epoch_correct},
           {"epoch_terms", epoch_terms},       {"evaluations_since_best", evaluations_since_best},
           {"evaluation_due", evaluation_due}, {"stopped_by", stopped_by}};
    if (best_score) j["best_score"] = *best_score;
    return j;
  }
  void read(const Json& j) {
    epoch_loss = j.value("epoch_loss", 0.0);
    epoch_correct = j.value("epoch_correct", 0.0);
    epoch_terms = j.value("epoch_terms", 0.0);
    evaluations_since_best = j.value("evaluations_since_best", std::int64_t{0});
    evaluation_due = j.value("evaluation_due", false);
    stopped_by = j.value("stopped_by", std::string());
    if (j.contains("best_score")) best_score = j.at("best_score").get<double>();
  }
};

}  // namespace echelon
