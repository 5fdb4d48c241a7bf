#pragma once
// Who hears what happens in a run (run/events.h): the metrics files and the trace. The progress bar is in
// cli/progress_listener.h.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "parallel/trainer.h"
#include "run/events.h"
#include "track/metrics.h"
#include "track/run.h"
#include "track/trace.h"
#include "world/clock.h"
#include "world/disk.h"

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
  Clock& clock_;
  std::int64_t every_;
  TellNote tell_;
  std::unique_ptr<MetricsWriter> writer_;
  double loss_sum_ = 0, correct_sum_ = 0, terms_ = 0;  // since the last point
};

// trace.json: what the driving thread did when (steps, waiting for input, evaluations), and every operation of every
// core. Watches the trainer from its construction on.
class TraceListener : public RunListener {
 public:
  TraceListener(Disk& disk, Clock& clock, Cores& cores, Trainer& trainer, const RunFolder& folder, TellNote tell);
  void on_span(const Span& span) override { spans_.push_back(span); }
  void finish();

 private:
  struct Operation {
    const Node* node;
    double begin, end;
  };
  static constexpr std::size_t most_operations = 200'000;  // on a core: what a viewer can still show

  Disk& disk_;
  std::string path_;
  TellNote tell_;
  double origin_;
  std::vector<Span> spans_;
  std::vector<std::vector<Operation>> operations_;  // by core
};

}  // namespace echelon::cli
