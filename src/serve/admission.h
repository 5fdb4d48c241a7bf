#pragma once
// How many requests are at work at once: as many as are answered within a given time, at the rate measured while the
// server was busy. Beyond that a request is better refused than begun: it would only make the others slower. A few are
// always let in. Thread-safe.

#include <cstdint>

#include "world/os/mutex.h"

namespace echelon::serve {

class Admission {
 public:
  Admission(double most_seconds, std::int64_t always) : most_seconds_(most_seconds), always_(always) {}
  bool enter(double now);  // false: refused; else leave() follows
  void leave(double now);

 private:
  const double most_seconds_;
  const std::int64_t always_;
  Mutex mutex_;
  std::int64_t active_ = 0;
  double busy_since_ = 0;  // the last answer, or the request that ended a pause
  double each_ = 0;        // seconds between two answers, on average over the last hundred or so
};

}  // namespace echelon::serve
