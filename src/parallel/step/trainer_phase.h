#pragma once
// One phase of a training step (a GAN has two, everything else one): what the trainer keeps for it. Private to the
// trainer's own files.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "parallel/step/trainer.h"

namespace echelon {

// What to say and do after a node, when there are other ranks.
struct NodeActions {
  std::string doing;  // "backward of conv2"
  double flops = 0;
  std::vector<std::size_t> completes;  // buckets whose last gradient it is
  int product = -1;                    // the thin product that it computes
  std::vector<Range> reads = {};       // parameters; in forward only
};

struct TrainerPhase {
  std::string name;
  std::int64_t loss_terms;
  SlicePlans plans;
  CarryStore carries;
  std::vector<TrainedSpan> segments;  // what it trains
  std::unique_ptr<Update> update = nullptr;
  std::vector<ShardRunner> runners = {};  // by own core
  std::span<double> loss, correct;        // by shard, of all ranks
  double total_loss = 0, total_correct = 0;
  bool finite = true;

  // Only with several ranks:
  std::map<std::int64_t, std::vector<NodeActions>> node_actions = {};  // by slice, for each node
  double compute_seconds = 0;                                          // of the last step
  std::vector<Bucket> buckets = {};
};

}  // namespace echelon
