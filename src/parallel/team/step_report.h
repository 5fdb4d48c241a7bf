#pragma once
// What ranks in lock-step report to each other, and how often: their losses, and whether one of them asks to stop.

#include <cstdint>

#include "parallel/exchange.h"

namespace echelon {

struct StepReport {  // of one rank, about its steps since the last report
  double loss = 0;   // sum over the terms
  double correct = 0, terms = 0, samples = 0;
  double bytes = 0;          // sent so far
  double stop_requests = 0;  // 1 if it asks to stop

  StepReport& operator+=(const StepReport& o) {
    loss += o.loss, correct += o.correct, terms += o.terms, samples += o.samples;
    bytes += o.bytes, stop_requests += o.stop_requests;
    return *this;
  }
};

inline constexpr std::int64_t longest_silence = 64;  // steps without a report

// Steps between reports: whenever the ranks exchange anyway, if that is often enough.
inline std::int64_t steps_between_reports(const When& when) {
  return when.tau <= longest_silence && when.probability >= 1 && !when.at_end ? when.tau : longest_silence;
}

// By all ranks together, in a step on average: an all-gather in a ring.
inline ExchangeKind::Traffic report_traffic(const When& when, int workers) {
  const double often = 1.0 / static_cast<double>(steps_between_reports(when));
  const double pairs = static_cast<double>(workers) * (workers - 1);
  return often * ExchangeKind::Traffic{pairs, pairs * sizeof(StepReport)};
}

}  // namespace echelon
