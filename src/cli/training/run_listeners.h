#pragma once
// Who hears what happens in a run (run/events.h): the metrics files. The progress bar is in
// cli/training/progress_listener.h, the trace in cli/training/trace_listener.h.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "run/events.h"
#include "track/metrics.h"
#include "track/run.h"
#include "world/os/clock.h"
#include "world/os/disk.h"

namespace echelon::cli {

using TellNote = std::function<void(const std::string&)>;

// metrics.jsonl and the TensorBoard files of a run. What the disk refuses is told in a note; training goes on.
class MetricsListener : public RunListener {
 public:
  // Points after `resumed_step` that an earlier process wrote are cut off: the steps will be done again.
  MetricsListener(Disk& disk, Clock& clock, const RunFolder& folder, std::int64_t resumed_step, std::int64_t every,
                  TellNote tell);
  void on_step(const StepEvent& event) override;
  void on_evaluation(const EvaluationEvent& event) override;
  std::shared_future<void> flush() { return writer_->flush(); }  // ready when all points so far are on disk
  void finish();

 private:
  void pass_warnings();
  MetricPoint point(std::int64_t step, double epoch) const;
  Clock& clock_;
  std::int64_t every_;
  TellNote tell_;
  std::unique_ptr<MetricsWriter> writer_;
  double loss_sum_ = 0, correct_sum_ = 0, terms_ = 0, samples_ = 0;  // since the last point
  double seconds_ = 0;                                               // in steps, at the last point
  std::int64_t last_step_ = 0;                                       // of the last point of a training step
  // What the training has cost so far: seconds of its own clock, samples, bytes sent (-1: not counted).
  struct Cost {
    double seconds = 0, samples = 0, bytes = -1;
  } before_, now_;  // before this process resumed; in all
};

}  // namespace echelon::cli
