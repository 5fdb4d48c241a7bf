#pragma once
// A network as a chain of layers with what each costs on a platform: what searches work on. Made once from the training
// graph; estimates of thousands of plans then take no graph at all. Plain data.

#include <string>
#include <vector>

#include "foresight/costs/platform.h"
#include "plan/stages.h"
#include "recipe/prepare.h"

namespace echelon::foresight {

struct LayerCost {
  std::string name;
  // Seconds of one micro-batch on rank 0: of what slices share, and of what every rank of a stage computes.
  struct Seconds {
    double split = 0, whole = 0;
    double over(int tensor) const { return whole + split / tensor; }
  };
  Seconds forward = {}, backward = {}, weights = {};  // weights: gradients of weights that no other layer waits for
  double split_floats = 0, whole_floats = 0;          // of parameters, the same way
  double sends = 0;          // bytes of one micro-batch that go to later layers; as many come back
  double kept = 0;           // bytes of one micro-batch that backward reads again
  bool has_weights = false;  // of which rows or columns could be spread
  double joins = 0;          // bytes that slices put together, forward and backward
  double floats_over(int tensor) const { return whole_floats + split_floats / tensor; }
  double seconds(int tensor) const { return forward.over(tensor) + backward.over(tensor) + weights.over(tensor); }
};

struct LayerTable {
  std::vector<LayerCost> layers;
  std::vector<LayerWork> work;  // the same layers, for plan/stages.h
  int shards = 1, slices = 1;   // micro-batches of a step; slices of layers
  std::int64_t samples = 1;     // of a micro-batch
  double batch = 1;             // samples of a step
  std::size_t slots = 0;        // numbers of optimizer state for each weight
  double update = 0;            // seconds for each number
  double floats = 0;            // of all parameters

  double seconds() const;  // of one micro-batch, whole
};

LayerTable layer_table(const PreparedRun& prepared, const Platform& platform);
// The layers alone, of a training graph as optimise() gives it.
LayerTable layer_table(const Graph& graph, const Platform& platform);

}  // namespace echelon::foresight
