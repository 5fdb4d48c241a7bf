#include "world/os/clock.h"

#include <chrono>

namespace echelon {

namespace {

class RealClock : public Clock {
 public:
  double seconds() override { return since(std::chrono::steady_clock::now()); }
  double unix_seconds() override { return since(std::chrono::system_clock::now()); }

 private:
  static double since(auto now) { return std::chrono::duration<double>(now.time_since_epoch()).count(); }
};

}  // namespace

std::unique_ptr<Clock> make_real_clock() { return std::make_unique<RealClock>(); }

}  // namespace echelon
