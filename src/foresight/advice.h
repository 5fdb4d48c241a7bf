#pragma once
// What to do next, in words: from what a run left behind, or from what is predicted before it. Each piece names what
// was seen, with the number, and the command to try. Pure functions.

#include <string>
#include <vector>

#include "base/json.h"
#include "foresight/rank_plans.h"

namespace echelon::foresight {

struct Advice {
  std::string what;     // "input-bound: 31 % of the time was spent waiting for samples"
  std::string command;  // to try next; may be empty
};

struct AdviceFacts {
  std::string recipe;          // as it was given
  int workers = 1, cores = 1;  // asked for; of this machine, or as many as the cluster has
  std::int64_t batch = 1, shards = 1;
  bool here = true;        // on this machine
  std::size_t memory = 0;  // that a rank may have; 0: any
};

std::vector<Advice> advice_before(const Ranking& ranking, const AdviceFacts& facts);

// `summary` is a run's summary.json; `train` its [train] table's batch and shards.
std::vector<Advice> advice_after(const Json& summary, const AdviceFacts& facts);

}  // namespace echelon::foresight
