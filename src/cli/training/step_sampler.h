#pragma once
// What an ordinary run shows of its own speed, to be held against the prediction: the time of a step (the mean of all
// but the shortest and the longest tenth), and the time of each operation on core 0 of this rank (the median of a few
// steps, fewer and fewer as the run gets longer, so that it costs nothing). All ranks have one.

#include <map>
#include <string>
#include <vector>

#include "parallel/engine.h"
#include "parallel/team/team.h"
#include "run/events.h"

namespace echelon::cli {

class StepSampler : public RunListener {
 public:
  // `operations`: also time those; then nobody else may watch the engine.
  StepSampler(Team& team, Engine& engine, bool operations);
  void on_step(const StepEvent& event) override;

  double step_seconds() const;  // 0: there were too few steps
  // Of all ranks, by rank: seconds of one run of each operation, by name. Collective.
  std::vector<std::map<std::string, double>> gather_operations();

 private:
  std::map<std::string, double> operations() const;
  Team& team_;
  Engine& engine_;
  const bool times_operations_;
  std::int64_t steps_ = 0, next_sample_;
  int samples_ = 0;
  bool sampling_ = false;
  double before_ = 0;                // seconds in steps, at the last one
  std::vector<float> step_seconds_;  // of the first most_steps
  std::map<const Node*, std::vector<float>> seconds_;
};

}  // namespace echelon::cli
