#include "serve/admission.h"

namespace echelon::serve {

bool Admission::enter(double now) {
  bool enters = false;
  mutex_.take([&] {
    enters = active_ < always_ || static_cast<double>(active_) * each_ < most_seconds_;
    if (!enters) return;
    if (active_ == 0) busy_since_ = now;
    ++active_;
  });
  return enters;
}

void Admission::leave(double now) {
  mutex_.take([&] {
    each_ += 0.01 * (now - busy_since_ - each_);
    busy_since_ = now;
    --active_;
  });
}

}  // namespace echelon::serve
