#pragma once
// What rank 0 of `echelon train` does besides training: it tells people and files what happens, from the opening lines
// to the result and the summary in the run's folder.

#include <optional>
#include <ostream>
#include <string>

#include "cli/foresight/run_prediction.h"
#include "cli/training/histogram_listener.h"
#include "cli/training/log_listener.h"
#include "cli/training/progress_listener.h"
#include "cli/training/run_listeners.h"
#include "cli/training/train_folder.h"
#include "cli/training/train_rank.h"

namespace echelon::cli {

class RunReporter {
 public:
  // All must outlive it. `plain`: standard output is no terminal of its own.
  RunReporter(const TrainSettings& settings, const PreparedRun& prepared, Disk& disk, Clock& clock,
              const TrainFolder& opened, LogListener& log, bool plain);

  void note(const std::string& text) { progress_.on_note(text), log_.on_note(text); }
  RunListener& progress() { return progress_; }
  // Instead of what the settings say; null: nothing.
  void expect(std::shared_ptr<const PredictedRun> predicted) { predicted_ = std::move(predicted); }

  // Before training.run(): what will be trained.
  void begin(Training& training, const TrainingJob& job, const World& world, Cores& cores);
  // After it, where others go on from here.
  void hand_over();
  // After it, where the run has ended. `plan`: as predicted_plan gives it, or null. `signal`: that has come; empty:
  // none. Failure if what the run came to is not on disk.
  void end(Training& training, const RunSummary& summary, const World& world, Cores& cores, bool exact,
           const Json& plan, const SampledSteps& sampled, const std::string& signal);

 private:
  void expect_saved(const RunSummary& summary, const std::string& unwritten) const;
  void keep_figures(nlohmann::ordered_json& json) const;
  std::string try_to_write_summary(const Json& summary);
  void try_to_write(const std::string& path, const Json& json);
  std::string curve();
  void put_into_registry();

  const TrainSettings& settings_;
  const PreparedRun& prepared_;
  Disk& disk_;
  Clock& clock_;
  const RunFolder& folder_;
  const bool resumed_;
  std::int64_t before_ = 0;  // steps that were done when this process began
  LogListener& log_;
  std::ostream nowhere_{nullptr};
  std::ostream& out_;
  ProgressListener progress_;
  std::shared_ptr<const PredictedRun> predicted_;
  std::optional<MetricsListener> metrics_;
  std::optional<HistogramListener> histograms_;
};

}  // namespace echelon::cli
