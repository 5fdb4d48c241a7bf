#include "optim/plateau.h"

#include <algorithm>
#include <cmath>

namespace echelon {

bool Plateau::evaluated(double score) {
  if (!best_ ? !std::isnan(score) : score > *best_ + spec_.threshold * std::abs(*best_)) {
    best_ = score;
    waited_ = 0;
  } else {
    ++waited_;
  }
  if (cooling_ > 0) {
    --cooling_;
    waited_ = 0;
  }
  if (waited_ <= spec_.patience) return false;
  waited_ = 0;
  cooling_ = spec_.cooldown;
  const double before = factor_;
  factor_ = std::max(spec_.least, factor_ * spec_.drop);
  return factor_ < before;
}

Json Plateau::to_json() const {
  Json j{{"factor", factor_}, {"waited", waited_}, {"cooling", cooling_}};
  if (best_) j["best"] = *best_;
  return j;
}

void Plateau::read(const Json& j) {
  factor_ = j.value("factor", 1.0);
  waited_ = j.value("waited", std::int64_t{0});
  cooling_ = j.value("cooling", std::int64_t{0});
  best_.reset();
  if (j.contains("best")) best_ = j.at("best").get<double>();
}

}  // namespace echelon
