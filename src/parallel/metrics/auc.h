#pragma once
// Area under the ROC curve: how often a positive sample has a greater score than a negative one, where equal scores
// count one half. Counted in whole numbers, so the order of the samples has no effect on the result.

#include <vector>

namespace echelon {

struct ScoredSample {
  double score = 0;
  bool positive = false;
};

// NaN if a score is none, or if all samples are positive or all negative.
double area_under_roc(std::vector<ScoredSample> samples);

}  // namespace echelon
