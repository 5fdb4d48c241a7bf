#pragma once
// What happens in a run, for its listeners: the progress bar, the metrics files, a trace. A listener must not take
// long, and what it throws ends the run.

#include <cstdint>
#include <string>

#include "parallel/step/evaluator.h"
#include "parallel/step/span.h"
#include "parallel/step/step_result.h"
#include "track/checkpointer.h"

namespace echelon {

struct StepEvent {
  std::int64_t step = 0, total_steps = 0;  // step counts from 1: updates done
  double epoch = 0;                        // 1.5: in the middle of the second
  double lr = 0;
  StepResult result;
  double seconds = 0;        // since the training began or was resumed
  double step_seconds = 0;   // of these, in steps: without evaluations and saves
  double samples_per_s = 0;  // of the last few seconds
  double peak_share = 0;     // of the cores' multiply-add limit
  double eta_seconds = 0;    // until the last step, at the present speed
  double bytes = -1;         // sent by all ranks so far; -1: not counted
};

struct EvaluationEvent {
  std::int64_t step = 0;
  double epoch = 0;
  std::string part;  // what was evaluated on: "val", or "test"
  Evaluation result;
  bool best = false;  // of this run so far
  // The one look at the test part of a run that has a validation part too: the step of the weights; -1 otherwise.
  std::int64_t tested_step = -1;
};

class RunListener {
 public:
  virtual ~RunListener() = default;
  virtual void on_step(const StepEvent&) {}
  virtual void on_evaluation(const EvaluationEvent&) {}
  virtual void on_save_begins() {}
  virtual void on_save(const SaveResult&) {}
  virtual void on_span(const Span&) {}
  virtual void on_note(const std::string&) {}  // a sentence for people: a warning, a decision
};

}  // namespace echelon
