#pragma once
// When workers exchange: the [when] table of a recipe. A part of its own, because the same rule and the same exchange
// are different systems with another period (local SGD and synchronous SGD, for example).
//
//   tau, probability, at_end      after which steps a worker exchanges at all
//   n_push, n_fetch, warm_start   parameter servers without waiting: how many steps a push has, how often parameters
//   are
//                                 read, and how many updates the first worker makes before the others begin
//   tau_down                      elastic_tree: the period of the way to the children; tau is that to the parent
//
// Plain data; thread-safe.

#include <cstdint>

#include "base/part.h"
#include "base/random.h"

namespace echelon {

struct Composition;
struct CompositionFacts;

struct When {
  std::int64_t tau = 1;
  double probability = 1;
  bool at_end = false;
  std::int64_t n_push = 1, n_fetch = 1, warm_start = 0;
  std::int64_t tau_down = 0;  // 0: as tau

  // Whether a worker exchanges after that step, counted from 0. Never with at_end: the end is no step.
  bool due(std::int64_t step, const Stream& random) const {
    if (at_end) return false;
    return probability < 1 ? random.uniform(0) < static_cast<float>(probability) : (step + 1) % tau == 0;
  }
  bool every_step() const { return tau == 1 && probability >= 1 && !at_end; }
  // A push or a fetch is not that of one step.
  bool merges_steps() const { return n_push > 1 || n_fetch > 1 || warm_start > 0; }

  // Adds one problem for each reason why the composition cannot have this period, with a cure.
  void accepts(const Composition& composition, const CompositionFacts& facts, Problems& problems) const;

 private:
  void accepts_merged_steps(const Composition& composition, Problems& problems) const;
};

PartInfo when_part();
When read_when(OptionReader& options);  // [when]; calls `done`

}  // namespace echelon
