#pragma once
// What more workers would bring: the best plan for every number of them, where the curve bends and why. Pure but for
// what predictions need.

#include <functional>
#include <string>
#include <vector>

#include "foresight/rank_plans.h"

namespace echelon::foresight {

struct SweepPoint {
  int workers = 1;
  RankedPlan best;
  double batch = 1;  // samples of a step
  int shards = 1;
  double core_hours = 0;  // of the whole run
  double hours = 0;
};

struct Sweep {
  std::vector<SweepPoint> points;
  int bend = 0;     // the first number of workers that does less than 80 % of what one does, for each; 0: none
  std::string why;  // in a sentence
};

// 1, 2, 4, ... from the first to the last, both included.
std::vector<int> worker_counts(int first, int last);

// "workers=1..1024"; BadInput that shows how it is written otherwise.
std::pair<int, int> read_sweep(const std::string& text);

// Finds the bend of points that are in order.
void find_bend(Sweep& sweep);

}  // namespace echelon::foresight
