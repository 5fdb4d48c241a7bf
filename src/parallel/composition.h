#pragma once
// A system as parts that do not know each other: rule, exchange, when, sync, codec and order, read from a recipe's
// tables. Whether they fit together, and fit the model and the world, is decided before the first step
// (composition_check.cpp).

#include <memory>
#include <string>

#include "parallel/exchange.h"

namespace echelon {

struct Composition {
  std::string name;  // of the system, for people; empty if a recipe only names parts
  std::unique_ptr<const MergeRule> rule;
  std::unique_ptr<const ExchangeKind> exchange;
  std::string rule_name, exchange_name, sync_name, codec_name, order_name;
  std::unique_ptr<const Sync> sync;
  WorkSharing work;  // as the sync says
  When when;
  CodecMaker codec;                      // empty: plain numbers
  std::vector<NamedCodec> codec_choice;  // codec auto
  Order order;

  // The exact synchronous training of parallel/step/trainer.h does it: the same bits for any number of workers.
  bool is_exact() const;
  bool uses_messages() const;
  // What a worker does follows from its state and from the messages that it takes, in their order: no clock decides,
  // and nothing that two write into. So a run whose order was noted can be done again with the same bits.
  bool follows_messages() const;
  bool workers_step() const;  // whether a worker's own optimizer may move its weights
};

// Whether so many workers train replicas: one alone has no other to exchange with, unless it has several itself.
inline bool trains_replicas(const Composition* composition, int workers) {
  return composition && (workers > 1 || composition->exchange->traits().works_alone);
}

struct CompositionTables {
  std::string name;
  const Options &rule, &exchange, &when, &sync, &codec, &order;
};

// Problems of single parts are added. Complete in any case.
Composition read_composition(const CompositionTables& tables, Problems& problems);

// What else a composition has to fit to.
struct CompositionFacts {
  int workers = 1;         // 0: not known yet, so nothing is said that depends on it. Replicas, where they are split
  std::int64_t steps = 0;  // of the run; 0: not known yet
  int phases = 1;          // of the model's training step
  bool carries = false;    // values that flow from step to step
  bool clips_by_norm = false;
  bool needs_norms = false;  // the update rule scales whole parameters (LARS, LAMB), or needs them whole (ng_sgd)
  bool has_momentum = false;
  bool shares_memory = true;
  bool split = false;       // a replica is spread over several ranks, each of which exchanges its stage
  bool fixed_data = false;  // samples stay with their worker
  bool agrees = false;  // the model has statistics on which replicas agree at certain steps (models/wrappers/halp.h)
};

// Adds one problem for each reason why these parts cannot work together, with the nearest composition that can: asks
// every part (`accepts`) and adds what no part knows.
void check_composition(const Composition& composition, const CompositionFacts& facts, Problems& problems);

// A refusal, with its reason and its cure. It has no place: the parts may come from several files.
inline void refuse(Problems& problems, bool when, const std::string& why) {
  if (when) problems.add({}, why);
}

// What all workers together send in a step, on average over the period: the exchange, and what ranks tell each other
// about their losses and their work. `pieces`: of the model's parameters, in order (for codecs with a scale for each).
// Where a codec's bytes depend on the numbers they are its usual ones, or the most that can be.
enum class CodecBytes { usual, most };
struct FactorFacts {                  // only for exchanges of factors
  std::size_t batch = 1;              // samples of the global batch
  std::vector<ThinProduct> products;  // of the model
};
ExchangeKind::Traffic traffic_per_step(const Composition& composition, int workers,
                                       const std::vector<CodecPiece>& pieces, const std::vector<Range>& buckets = {},
                                       CodecBytes bytes = CodecBytes::usual, const FactorFacts& factors = {});
// The exchange's part of it as formulas.
ExchangeKind::TrafficTexts traffic_texts(const Composition& composition, int workers,
                                         const std::vector<CodecPiece>& pieces, const std::vector<Range>& buckets);

}  // namespace echelon
