#pragma once
// Time as the program sees it. Code above world/ never asks the operating system, so that a test can stop the clock and
// the simulated world can have a time of its own. Thread-safe.

#include <memory>

namespace echelon {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual double seconds() = 0;       // never goes back; only differences mean something
  virtual double unix_seconds() = 0;  // since 1970, for names and logs
};

std::unique_ptr<Clock> make_real_clock();

}  // namespace echelon
