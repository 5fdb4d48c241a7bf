#pragma once
// What `echelon train` says before the first step and after the last one.

#include <iosfwd>
#include <string>

#include "cli/answers/predictions.h"
#include "recipe/prepare.h"
#include "run/training/training.h"
#include "track/run.h"

namespace echelon::cli {

// The command that goes on with a run. By its own recipe, in which every --set is written down.
std::string resuming_command(const RunFolder& folder);

// Which checkpoint is the best, in the words that every verb uses: "best val_f1, and of equals the lowest loss".
std::string rule_of_best(const std::string& monitor);

// What is going to be trained, in a few lines.
// `cores` of all workers; `workers` in words.
std::string opening(const PreparedRun& prepared, int cores, const std::string& workers, Training& training,
                    const RunFolder& folder);

// Confusion matrix and some misread images (of a classifier), the curve (drawn already, or empty), accuracy, the
// weights' hash, the run's folder and what to try next; `again` is the command that trains the same, `before` the
// number of steps that were done before this process began.
void print_result(std::ostream& out, const PreparedRun& prepared, const std::optional<Predictions>& predictions,
                  const RunSummary& summary, const RunFolder& folder, const std::string& curve,
                  const std::string& again, std::int64_t before);

}  // namespace echelon::cli
