#pragma once
// A clock whose hands the test moves.

#include "world/os/clock.h"

namespace echelon::test {

class HandClock : public Clock {
 public:
  double seconds() override { return now_; }
  double unix_seconds() override { return 1.7e9 + now_; }
  void pass(double seconds) { now_ += seconds; }

 private:
  double now_ = 1000;
};

}  // namespace echelon::test
