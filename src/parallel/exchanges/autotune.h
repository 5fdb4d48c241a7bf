#pragma once
// How many learners a worker has and how often they exchange, found while training runs (CROSSBOW's tuner). More
// learners on a worker, and rarer exchanges, cost statistical efficiency. So learners are added only as long as
// throughput rises by a `gain` that is worth it, and then exchanges are made more frequent as long as throughput hardly
// falls. If it falls later, learners are taken away as long as that does no harm, and the search begins again. Pure
// logic: the caller has the clock.

#include <cstddef>
#include <cstdint>
#include <span>

namespace echelon {

struct LearnerSetting {
  std::int64_t learners = 1;  // of each worker
  std::int64_t tau = 1;       // a learner's steps between exchanges
  friend bool operator==(const LearnerSetting&, const LearnerSetting&) = default;
};

class Autotune {
 public:
  struct Limits {
    std::int64_t most_learners = 8, least_tau = 1;
    double gain = 0.1;  // of throughput: less is not worth a learner; as much may be given for a shorter tau
  };
  Autotune(const Limits& limits, LearnerSetting start);

  LearnerSetting setting() const { return memory_.now; }
  // That many samples were trained in `seconds` since the last call, all with the current setting. May change it.
  void measured(double samples, double seconds);
  bool has_settled() const { return memory_.phase == Phase::settled; }
  std::span<std::byte> state() { return std::as_writable_bytes(std::span(&memory_, 1)); }  // for checkpoints

 private:
  enum class Phase : std::int64_t { first, more_learners, shorter_tau, settled, fewer_learners };
  struct Memory {
    Phase phase = Phase::first;
    std::int64_t unsure = 1;  // the next measurement is of a setting that has only begun
    LearnerSetting now, best;
    double best_throughput = 0;  // samples a second
  };
  void try_setting(LearnerSetting setting, Phase phase);
  void go_on();
  void fewer_learners();

  Limits limits_;
  Memory memory_;
};

}  // namespace echelon
