#pragma once
// What several runs of one recipe under different systems have in common and where they differ: a table, curves against
// time, samples and bytes. Reads run folders; starts nothing.

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "track/curve.h"
#include "track/run.h"

namespace echelon::cli {

struct ComparedRun {
  std::string system;
  RunFolder folder;
  std::string failed;               // why there is no result; empty if there is one
  Json summary;                     // of the run
  std::vector<MetricPoint> points;  // of its metrics
};

ComparedRun read_compared(Disk& disk, const std::string& system, const RunFolder& folder);

struct ComparedResult {
  std::optional<double> accuracy, test_loss, train_loss, seconds, seconds_to_target, samples_per_s, bytes_per_step;
  std::string ended_by;
};
// `target`: an accuracy on the test data; 0: none is asked for.
ComparedResult result_of(const ComparedRun& run, double target);

std::string comparison_table(const std::vector<ComparedRun>& runs, double target);
Json comparison_json(const std::vector<ComparedRun>& runs, double target);

// Loss and accuracy against time, samples and bytes; only those for which there are points.
struct ComparedPlot {
  std::string name;  // "accuracy-time"
  std::vector<Series> series;
  PlotOptions options;
};
std::vector<ComparedPlot> comparison_plots(const std::vector<ComparedRun>& runs);

}  // namespace echelon::cli
