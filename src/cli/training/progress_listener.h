#pragma once
// The run as a person in front of a terminal (or a log) sees it: the bar, and a line for everything worth one.

#include <iosfwd>

#include "run/events.h"
#include "track/progress.h"

namespace echelon::cli {

std::string in_words(const EvaluationEvent& event);  // one line

class ProgressListener : public RunListener {
 public:
  // `total_epochs` 0: epochs are not shown. `descriptor` is what `out` writes to: 1 or 2.
  ProgressListener(std::ostream& out, int descriptor, Clock& clock, double total_epochs);
  void on_step(const StepEvent& event) override;
  void on_evaluation(const EvaluationEvent& event) override;
  void on_save(const SaveResult& result) override;
  void on_note(const std::string& note) override { progress_.say("note: " + note); }
  void finish() { progress_.finish(); }

 private:
  Progress progress_;
  int descriptor_;
  double total_epochs_;
  // Shown smoothed: a single step's loss jumps too much to be read.
  double loss_ = 0, accuracy_ = 0;
  std::int64_t seen_ = 0;
};

}  // namespace echelon::cli
