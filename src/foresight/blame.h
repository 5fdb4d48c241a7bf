#pragma once
// Which operation or link made a prediction wrong. In every run each rank times a few of its steps operation by
// operation (cli/training/step_sampler.h), and its waits for each other rank are counted anyway; both stand beside what
// was predicted for that rank. Pure functions.

#include <map>
#include <string>
#include <vector>

#include "foresight/costs/profile.h"
#include "foresight/prediction.h"

namespace echelon::foresight {

// What a rank did in a step, as measured.
struct RankOutcome {
  double compute = 0, exchange = 0;               // seconds
  std::map<int, double> waits = {};               // by the rank that it waited for
  std::map<std::string, double> operations = {};  // one run of each, as RankPrediction's
};

struct Difference {
  std::string what;                    // "conv2 conv2d on rank 1", "rank 0's wait for rank 1 (12.6 MB of it a step)"
  double predicted = 0, measured = 0;  // seconds of a step
  double longer() const { return measured - predicted; }
};

// Of every operation (on the rank where it differs most), of every wait, of sums and updates; the largest first.
std::vector<Difference> differences(const Prediction& predicted, const std::vector<RankOutcome>& measured);

// In words, of a prediction that is more than a fifth off; empty if it is not. `step`: seconds, measured.
std::string blame(const Prediction& predicted, double step, const std::vector<RankOutcome>& measured);

// Operations that took another time than predicted, by more than a fifth of their own and a fiftieth of the step, get
// in the profile what they were measured to take. False if there are none.
bool refit(Profile& profile, const Prediction& predicted, const std::vector<RankOutcome>& measured);

}  // namespace echelon::foresight
