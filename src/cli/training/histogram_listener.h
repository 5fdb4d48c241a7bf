#pragma once
// histograms.jsonl of a run: at each evaluation, for every tensor of the model, how its weights and the last step's
// gradient are distributed, and by how much the weights have changed since the evaluation before. Of large tensors
// evenly spaced elements are taken, so that a look costs milliseconds whatever the model's size, and later evaluations
// are left out so that the file stays small. On rank 0. A disk that refuses ends it, not the training.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "parallel/engine.h"
#include "run/events.h"
#include "track/append_log.h"
#include "track/run.h"

namespace echelon::cli {

// {"low", "high", "counts": [...]} of the finite ones; null if there are none.
Json histogram(std::span<const float> numbers, int bins = 40);

class HistogramListener : public RunListener {
 public:
  HistogramListener(Disk& disk, const RunFolder& folder, Engine& engine);
  void on_evaluation(const EvaluationEvent& event) override;

 private:
  static constexpr std::size_t most_elements = 4096;  // of a tensor
  Engine& engine_;
  AppendLog log_;
  bool works_ = true;
  std::int64_t next_ = 0;  // lines get rarer: each is at least a fiftieth of the steps later than the one before
  std::vector<std::vector<float>> before_;  // by tensor
};

}  // namespace echelon::cli
