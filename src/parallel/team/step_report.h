#pragma once
// What ranks in lock-step tell each other, and how often: their losses, and whether somebody wants to stop.

#include <cstdint>

#include "parallel/exchange.h"

namespace echelon {

inline constexpr std::size_t report_numbers = 6;     // loss, correct, terms, samples, bytes, wish to stop
inline constexpr std::int64_t longest_silence = 64;  // steps without hearing from the others

// Whether they do so after that many steps: whenever they exchange anyway, if that is often enough.
inline bool news_are_due(const When& when, std::int64_t steps) {
  const bool with_exchange = when.tau <= longest_silence && when.probability >= 1 && !when.at_end;
  return steps % (with_exchange ? when.tau : longest_silence) == 0;
}

// By all together, in a step on average: an all-gather in a ring.
inline ExchangeKind::Traffic report_traffic(const When& when, int workers) {
  const bool with_exchange = when.tau <= longest_silence && when.probability >= 1 && !when.at_end;
  const double often = 1.0 / static_cast<double>(with_exchange ? when.tau : longest_silence);
  const double pairs = static_cast<double>(workers) * (workers - 1);
  return often * ExchangeKind::Traffic{pairs, pairs * report_numbers * sizeof(double)};
}

}  // namespace echelon
