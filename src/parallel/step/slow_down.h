#pragma once
// Lets a core's computation take some factor longer than it does, for experiments with stragglers. One thread uses it.

#include "world/world.h"

namespace echelon {

class SlowDown {
 public:
  explicit SlowDown(World& world) : world_(world) {}
  void begin() { from_ = world_.now(); }                // what follows is computation
  void leave_out(double seconds) { from_ += seconds; }  // these were not
  // Sleeps as if what was computed since begin(), or the last call, had taken `factor` times as long.
  void apply(double factor) {
    if (factor <= 1) return;
    world_.sleep((factor - 1) * (world_.now() - from_));
    begin();
  }

 private:
  World& world_;
  double from_ = 0;
};

}  // namespace echelon
