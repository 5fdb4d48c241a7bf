#pragma once
// What `echelon models show` says of a model: its layers with shapes, weights and work, and the exact memory of a
// training step. Pure functions; nothing runs.

#include <cstdint>
#include <string>
#include <vector>

#include "models/model.h"

namespace echelon::models {

struct LayerRow {
  std::string layer;  // "block1.conv1"
  std::string ops;    // "conv2d 5x5 stride 1 pad 2"
  Shape output;  // for one sample, without the batch; with it if the description says so; of slice 0 if it stays cut
  std::int64_t weights = 0;
  double flops = 0;               // forward, for one sample
  int slices = 1;                 // in which it is computed; 1: whole, by everybody who needs it
  std::vector<std::size_t> from;  // rows whose values it reads, in their order; none: only inputs and parameters
};

struct PhaseMemory {
  std::string phase;
  std::size_t arena = 0;          // activations, gradients of activations, scratch: what an executor uses, to the byte
  std::size_t without_reuse = 0;  // what it would be if nothing shared memory
};

struct Description {
  std::string model, task, input;
  std::vector<LayerRow> layers;
  bool batched = false;  // whether the rows' shapes have the batch in front
  std::int64_t weights = 0, statistics = 0;
  double forward_flops = 0, training_flops = 0;  // for one sample
  std::int64_t batch = 0;
  std::vector<PhaseMemory> phases;     // of a step on `batch` samples in one shard
  std::size_t parameter_bytes = 0;     // the flat buffer, padding included
  std::size_t contribution_bytes = 0;  // gradients and statistics of one shard
  std::size_t step_bytes = 0;          // all of it: the largest arena, parameters and contributions
};

// `batched`: shapes as they are in the step, with the batch in front.
Description describe(const Model& model, std::int64_t batch, bool batched = false);

std::string to_text(const Description& description);  // a table for a terminal
std::string to_json(const Description& description);

}  // namespace echelon::models
