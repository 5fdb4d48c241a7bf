#pragma once
// Which plan is best here: all legal plans (degrees, schedules, chunks, ZeRO, recomputation), estimated from the
// network's layer table; the quickest of them, and the quickest of every combination of degrees, replayed exactly. A
// plan that needs more memory than a rank may have is out. Deterministic.

#include <cstddef>
#include <string>
#include <vector>

#include "foresight/outcomes.h"
#include "foresight/predict.h"
#include "plan/legal.h"

namespace echelon::foresight {

struct RankOptions {
  std::size_t memory = 0;         // that a rank may allocate; 0: any
  int most_replayed = 16;         // plans
  int most_replayed_ranks = 256;  // with more ranks everything is an estimate, but plans without a split
  bool async = false;             // also plans with a result of their own (pipedream)
  int cores_each = 0;             // as PredictOptions
  const std::vector<Outcome>* outcomes = nullptr;  // correct by these
  // Only what this search finds (foresight/search/search.h), beside plain data parallelism; "exhaustive": all legal
  // plans, and nothing else. Empty: all of it.
  std::string search = {};
};

struct RankedPlan {
  Prediction prediction;
  std::string found_by = "exhaustive";  // the search (foresight/search/search.h) that gave it
  bool replayed = false;                // else an estimate
  double efficiency = 0;                // samples a second for each worker, beside one worker alone
};

struct FoundStrategy {         // by a search over layers
  std::string search, layers;  // "conv1 ... pool5: 8 replicas; fc6 ... fc8: 1 replica x 8 parts"
  double seconds = 0;          // of a batch, as the search counts
  std::string plan = {};       // that does so; empty: no plan has that shape
};

struct Ranking {
  std::vector<RankedPlan> plans;  // that fit, the quickest first
  std::size_t legal = 0, too_large = 0;
  double alone = 0;  // seconds of a step on one worker with one core; what it needs in memory may be more
  std::vector<FoundStrategy> found = {};
  std::vector<std::string> why = {};  // the best is best, in sentences
};

// For as many workers as the platform has ranks.
Ranking rank_plans(const PreparedRun& prepared, const Platform& platform, const RankOptions& options = {});

// Of so many workers, on which platform one of them alone would be.
std::vector<PlanSpec> candidate_plans(const PlanFacts& facts, bool async);

}  // namespace echelon::foresight
