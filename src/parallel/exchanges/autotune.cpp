#include "parallel/exchanges/autotune.h"

#include <algorithm>

namespace echelon {

Autotune::Autotune(const Limits& limits, LearnerSetting start) : limits_(limits) { memory_.now = memory_.best = start; }

void Autotune::try_setting(LearnerSetting setting, Phase phase) {
  memory_.phase = phase;
  memory_.unsure = setting == memory_.now ? 0 : 1;
  memory_.now = setting;
}

// From the best setting so far: another learner, or else a shorter tau, or else nothing.
void Autotune::go_on() {
  Memory& m = memory_;
  if (m.phase == Phase::more_learners && m.best.learners < limits_.most_learners)
    return try_setting({m.best.learners + 1, m.best.tau}, Phase::more_learners);
  if (m.best.tau > limits_.least_tau)
    return try_setting({m.best.learners, std::max(limits_.least_tau, m.best.tau / 2)}, Phase::shorter_tau);
  try_setting(m.best, Phase::settled);
}

void Autotune::fewer_learners() {
  Memory& m = memory_;
  if (m.best.learners > 1) return try_setting({m.best.learners - 1, m.best.tau}, Phase::fewer_learners);
  m.phase = Phase::more_learners;
  go_on();
}

void Autotune::measured(double samples, double seconds) {
  Memory& m = memory_;
  if (seconds <= 0) return;
  if (m.unsure > 0) {
    --m.unsure;
    return;
  }
  const double throughput = samples / seconds;
  const double worth = m.best_throughput * (1 + limits_.gain), bearable = m.best_throughput * (1 - limits_.gain);
  switch (m.phase) {
    case Phase::first:
      m.best_throughput = throughput;
      m.phase = Phase::more_learners;
      return go_on();
    case Phase::more_learners:
      if (throughput >= worth) {
        m.best = m.now, m.best_throughput = throughput;
      } else {
        m.phase = Phase::shorter_tau;  // it was one too many
      }
      return go_on();
    case Phase::shorter_tau:
      if (throughput < bearable) return try_setting(m.best, Phase::settled);
      m.best = m.now;  // the best throughput stays: many small losses are a large one
      return go_on();
    case Phase::settled:
      if (throughput >= bearable) return;
      m.best_throughput = throughput;
      return fewer_learners();
    case Phase::fewer_learners:
      if (throughput < bearable) {
        m.phase = Phase::more_learners;
        return go_on();
      }
      m.best = m.now, m.best_throughput = std::max(m.best_throughput, throughput);
      return fewer_learners();
  }
}

}  // namespace echelon
