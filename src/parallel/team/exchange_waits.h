#pragma once
// Where the time that a replica spent on exchanges went: in waiting for other ranks, by rank, or in exchanging. One
// thread uses it.

#include <algorithm>
#include <vector>

#include "parallel/step/step_result.h"
#include "parallel/team/team.h"

namespace echelon {

class ExchangeWaits {
 public:
  explicit ExchangeWaits(Team& team) : team_(team), waits_(static_cast<std::size_t>(team.world().size())) {}

  void begin() {
    for (std::size_t r = 0; r < waits_.size(); ++r) waits_[r] = team_.waited_for_messages(static_cast<Rank>(r));
  }
  // An exchange has taken that long since begin(). Tasks beside the calling one may have waited longer, while it
  // computed: their waits are cut down to what was seen here.
  void end(double seconds, RankTimes& times) {
    double sum = 0;
    for (std::size_t r = 0; r < waits_.size(); ++r) {
      waits_[r] = team_.waited_for_messages(static_cast<Rank>(r)) - waits_[r];
      sum += waits_[r];
    }
    const double share = sum > seconds ? seconds / sum : 1;
    for (std::size_t r = 0; r < waits_.size(); ++r) times.waiting_for[r] += share * waits_[r];
    times.exchange += std::max(0.0, seconds - sum);
  }

 private:
  Team& team_;
  std::vector<double> waits_;  // for messages, by rank
};

}  // namespace echelon
