#pragma once
// Lowering the rate when a result does not get better any more: the state behind schedule.name = "plateau". It is told
// of every evaluation's score (higher is better) and says by which factor the rate is to be multiplied. What it
// remembers is plain numbers, which belong into a checkpoint: a resumed run then decides as one that was never stopped.

#include <cstdint>
#include <optional>

#include "base/json.h"

namespace echelon {

struct PlateauSpec {
  double drop = 0.1;          // what the rate is multiplied with ...
  std::int64_t patience = 3;  // ... after more than so many evaluations without a better score
  double threshold = 1e-4;    // better means: by this share of the best score
  std::int64_t cooldown = 0;  // evaluations after a drop that do not count
  double least = 0;           // the lowest rate, as a share of optim.lr
};

class Plateau {
 public:
  explicit Plateau(const PlateauSpec& spec = {}) : spec_(spec) {}

  double factor() const { return factor_; }
  bool watching() const { return best_.has_value(); }  // it was told of an evaluation
  // True if the rate drops because of it. A score that is not a number is never better.
  bool evaluated(double score);

  Json to_json() const;
  void read(const Json& json);

 private:
  PlateauSpec spec_;
  double factor_ = 1;
  std::optional<double> best_;
  std::int64_t waited_ = 0, cooling_ = 0;
};

}  // namespace echelon
