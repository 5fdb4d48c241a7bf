#pragma once
// A plan: where the pieces of a training run. It changes no bit of the result, except where it says so itself. People
// write it as
//   --plan data=2,pipeline=2,schedule=1f1b
// or as a TOML file with the same keys. What is left out has its default; what is left of the workers is data parallel.
//
//   data      replicas, which split the micro-batches (logical shards) of a batch among them
//   pipeline  ranks that a replica's layers are spread over, as stages
//   tensor    ranks that the slices of each layer are spread over: divides model.slices
//   sequence  whether what works on rows by themselves is split by rows between layers that are split (plan/sequence.h)
//   schedule  in which order a rank works (plan/schedule.h)
//   sync      which weights a forward pass reads, for schedule pipedream: the stage's newest ("stash"), or those after
//             the same update on all stages ("vertical")
//   active    micro-batches under way at once, for schedule ampnet
//   updates   after how many of them a stage updates its weights, for schedule ampnet
//   cuts      the layers at which stages begin, from the second stage on; left out: stages of about equal work
//   chunks    stages on each rank, for schedules interleaved and zero_bubble
//   zero      what the ranks that have the same stage share in ranges: 1 the optimizer's state, 2 the sums of gradients
//             too, 3 the parameters too
//   prefetch  how many parameters ahead of its use a parameter is gathered (zero=3)
//   recompute which activations are computed again for backward instead of being kept (plan/recompute.h)
//   offload   a folder: the optimizer's state lies in files there
//   offloads  what lies there: "state", or "all", with zero=3: parameters and sums of gradients too
//   tasks     who runs which micro-batches: "fixed", the same in every step, or "free": whoever has none left takes one
//             of a rank that has (parallel/planned/micro_task_engine.h)
//   neighbours  ranks next to each other: the "stages" of a replica, or "replicas" of the same stage
//   evaluate  who evaluates: all ranks, each with a copy of the whole model, or the first alone, from a file
//   [[layer]] layers that are split another number of ways, or pinned to a stage (plan/layer_rules.h)
//   scheme    the order of work where layers are split by batch (plan/batch_split.h)
//   mesh, layout  degrees in the words of Mesh-TensorFlow (plan/mesh.h)
//
// Plain data; thread-safe. Which plans work is in plan/legal.h.

#include <string>
#include <vector>

#include "base/options.h"
#include "plan/layer_rules.h"
#include "plan/schedule.h"

namespace echelon {

struct PlanSpec {
  int data = 0;  // 0: what is left of the workers
  int pipeline = 1;
  int tensor = 1;
  bool sequence = false;
  int chunks = 1;
  std::string schedule = "1f1b";
  std::string sync = "stash";
  int active = 0;  // 0: two for each stage
  int updates = 1;
  std::vector<std::string> cuts = {};
  int zero = 0;
  int prefetch = 1;
  std::string recompute = "none";
  std::string offload = {};  // empty: in memory
  std::string offloads = "state";
  std::string tasks = "fixed";
  std::string neighbours = "stages";
  std::string evaluate = "all";
  std::vector<LayerRule> layers = {};
  std::string scheme = {};                   // empty: c, where it matters
  std::vector<std::string> dimensions = {};  // of tensors, that are split; empty: all that have slices
  // Filled in with `data`: in how many stages layers that are split by batch and others take turns; 0: those that are
  // split by batch come first.
  int alternating = 0;
  // Filled in where scheme = "pipelined": where exchanges between parts cut the passes of stages.
  StageSegments segments = {};

  bool splits_batch() const;
  bool splits_batch(int stage) const { return splits_batch() && (alternating > 0 ? stage % 2 == 0 : stage == 0); }
  int stages() const;
  int ranks_of_replica() const { return pipeline * tensor; }
  // Which replica a rank belongs to, and its place within it; and back. `data` is filled in.
  bool replicas_are_neighbours() const { return neighbours == "replicas"; }
  int replica_of(int rank) const { return replicas_are_neighbours() ? rank % data : rank / ranks_of_replica(); }
  int place_of(int rank) const { return replicas_are_neighbours() ? rank / data : rank % ranks_of_replica(); }
  int rank_at(int replica, int place) const {
    return replicas_are_neighbours() ? place * data + replica : replica * ranks_of_replica() + place;
  }
  // Whether ranks have pieces of the training (parallel/planned/), or each all of it.
  bool splits_model() const {
    return pipeline > 1 || tensor > 1 || zero > 0 || recompute != "none" || !offload.empty() || frees_tasks();
  }
  bool goes_both_ways() const;  // two pipelines in opposite directions
  bool is_message_driven() const { return pipeline > 1 && schedule == "ampnet"; }
  int most_active() const { return active > 0 ? active : 2 * pipeline; }
  bool frees_tasks() const { return tasks == "free"; }
  bool sums_outside() const { return frees_tasks() || is_message_driven(); }  // of stages: their engines do
  // Under a system with them, `zero` shares nothing: every replica has all of its own in files.
  bool offloads_parameters() const { return !offload.empty() && offloads == "all"; }
  bool has_own_result() const;  // asynchronous: not the bits of exact training
  // By how many updates the weights of a step's passes are older than in exact training, on that stage.
  int staleness(int stage) const;
  friend bool operator==(const PlanSpec&, const PlanSpec&) = default;
};

// "data=2,pipeline=2,schedule=1f1b": what can be given to --plan, but for rules of layers.
std::string to_string(const PlanSpec& plan);

// "data=2,pipeline=2,cuts=fc2:fc3" as a table; a word without '=' is a problem. Every key's place is the flag itself.
Options plan_options(const std::string& text, Problems& problems);

// The plan of as many workers, each of whose cores is a rank: more replicas, those of a stage next to each other.
PlanSpec with_cores_as_ranks(PlanSpec plan, int cores);

// Reads all keys; problems (unknown keys, numbers out of range) are added to the reader's.
PlanSpec read_plan(OptionReader& table);

}  // namespace echelon
