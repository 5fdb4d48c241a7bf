#pragma once
// What a trained classifier says of the whole test part: the confusion matrix, and its most confident mistakes with
// their pictures. evaluation.json of a run, and the end of `echelon train`.

#include <cstdint>
#include <optional>
#include <vector>

#include "base/json.h"
#include "recipe/prepare.h"
#include "run/training/training.h"

namespace echelon::cli {

struct Mistake {
  std::int32_t is, said;
  double confidence;
  std::vector<std::uint8_t> pixels;  // grey, 0 to 255; none if the input is no small grey picture
};

struct Predictions {
  std::vector<std::int64_t> confusion;  // [classes, classes]
  std::vector<Mistake> mistakes;        // the most confident ones first
};

// After the run. None if the run was stopped, has no test part, or is no classifier of at most a hundred classes.
std::optional<Predictions> predict_test(const PreparedRun& prepared, Training& training, const RunSummary& summary,
                                        Cores& cores);

// {"classes", "confusion": rows, "mistakes": [{"is", "said", "confidence", "width", "height", "pixels"}]}
Json to_json(const Predictions& predictions, const PreparedRun& prepared);

}  // namespace echelon::cli
