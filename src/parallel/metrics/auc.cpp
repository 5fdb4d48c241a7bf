#include "parallel/metrics/auc.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace echelon {

double area_under_roc(std::vector<ScoredSample> samples) {
  if (std::ranges::any_of(samples, [](const ScoredSample& s) { return std::isnan(s.score); }))
    return std::numeric_limits<double>::quiet_NaN();
  std::ranges::sort(samples, {}, &ScoredSample::score);
  std::uint64_t positives = 0, negatives = 0;  // so far
  unsigned __int128 twice_won = 0;             // pairs, and equal ones once
  for (std::size_t i = 0; i < samples.size();) {
    std::uint64_t equal_positives = 0, equal_negatives = 0;
    const double score = samples[i].score;
    for (; i < samples.size() && samples[i].score == score; ++i)
      ++(samples[i].positive ? equal_positives : equal_negatives);
    twice_won += static_cast<unsigned __int128>(equal_positives) * (2 * negatives + equal_negatives);
    positives += equal_positives, negatives += equal_negatives;
  }
  return static_cast<double>(twice_won) / (2.0 * static_cast<double>(positives) * static_cast<double>(negatives));
}

}  // namespace echelon
