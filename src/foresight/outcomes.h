#pragma once
// What was predicted for runs of this machine, and what came of it: one small file each, beside the profile. They grade
// the predictions (`echelon plan grade`) and correct them: later predictions of the same kind of run are multiplied by
// the median of measured / predicted of the last few. Files are read with the suspicion of the profile's.

#include <string>
#include <vector>

#include "base/json.h"
#include "foresight/costs/platform.h"
#include "foresight/prediction.h"
#include "world/os/disk.h"

namespace echelon::foresight {

struct Outcome {
  std::string run = {}, model = {}, plan = {}, kind = {};  // kind: see kind_of
  int workers = 1;
  double at = 0;                                       // seconds since 1970
  double correction = 1;                               // that was in the prediction
  double predicted = 0, measured = 0;                  // seconds of a step
  double predicted_bytes = 0, measured_bytes = 0;      // of memory on the rank with the most; 0: not known
  double predicted_sent = 0, measured_sent = 0;        // bytes of all ranks in a step; 0: not known
  double predicted_waits = 0, measured_waits = 0;      // share of a rank's time, the mean of all
  double predicted_compute = 0, measured_compute = 0;  // seconds of a step, the mean of all ranks
  double from_roofline = 0;                            // share of the computing time that was never measured
  std::string why_off = {};  // what was wrong with it, in words (foresight/blame.h); empty if it was not far off
  bool refitted = false;     // costs of operations were changed after it: it corrects nothing any more

  double error() const { return measured > 0 ? predicted / measured - 1 : 0; }  // -0.1: ten per cent too short
};

// "whole", "stages", "slices", "shared state" (ZeRO) or "recomputed", "in memory", "over links of 100 Mbit/s" or "on a
// network", and "in turns" where a machine has fewer cores than ranks: what is wrong in the same way.
std::string kind_of(const PlanSpec& plan, const Platform& platform);

Json to_json(const Outcome& outcome);
Outcome parse_outcome(std::string_view text, const std::string& where);  // BadInput if it is none

// The oldest first; files that cannot be read are left out.
std::vector<Outcome> load_outcomes(Disk& disk, const std::string& folder);
void save_outcome(Disk& disk, const std::string& folder, const Outcome& outcome, const std::string& name);

// By what a prediction of that kind and model is to be multiplied: the median of measured / predicted of its last runs,
// or, while there are too few of the model, of all models. 1 while there are too few of those, and where it would not
// have made the predictions of these runs better.
double correction_of(const std::vector<Outcome>& outcomes, const std::string& kind, const std::string& model);
void correct(Prediction& prediction, double factor);

// Errors of all outcomes.
struct Grade {
  std::size_t runs = 0;
  double median = 0, ninetieth = 0;  // of |predicted / measured - 1|
  double memory = 0;                 // the largest error of those whose memory is known
};
Grade grade(const std::vector<Outcome>& outcomes);

}  // namespace echelon::foresight
