#pragma once
// Two ways of doing the same, measured in turns so that whatever else the machine does disturbs both alike.

#include <algorithm>
#include <functional>
#include <vector>

#include "bench/peak.h"

namespace echelon::bench {

struct Rivals {
  double ours = 1e30, theirs = 1e30;  // best seconds of one run
  double ratio = 0;                   // median of theirs / ours, turn by turn
};

inline Rivals measure_in_turns(const std::function<void()>& ours, const std::function<void()>& theirs, int turns = 15,
                               double seconds_each = 2e-3) {
  ours(), theirs();
  double begin = core_time();
  ours();
  const int repeats = static_cast<int>(seconds_each / (core_time() - begin)) + 1;
  const auto time = [&](const std::function<void()>& run) {
    begin = core_time();
    for (int k = 0; k < repeats; ++k) run();
    return (core_time() - begin) / repeats;
  };
  Rivals r;
  std::vector<double> ratios;
  for (int turn = 0; turn < turns; ++turn) {
    const double a = time(ours), b = time(theirs);
    r.ours = std::min(r.ours, a), r.theirs = std::min(r.theirs, b);
    ratios.push_back(b / a);
  }
  std::nth_element(ratios.begin(), ratios.begin() + turns / 2, ratios.end());
  r.ratio = ratios[static_cast<std::size_t>(turns) / 2];
  return r;
}

}  // namespace echelon::bench
