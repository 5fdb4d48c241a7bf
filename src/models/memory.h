#pragma once
// How much memory a training step of a model takes, found out without taking it. Pure functions.

#include <cstddef>
#include <cstdint>

#include "models/model.h"

namespace echelon::models {

struct StepMemory {
  std::size_t parameters = 0;  // the flat buffer of all parameters; the contributions of a shard take as much again
  std::size_t arena = 0;       // of the phase that needs most: activations, their gradients, scratch
  std::size_t least() const { return 2 * parameters + arena; }
};

// Of a step on one micro-batch of so many samples. The arena is exact (graph/passes/memory.h) unless that is not worth
// knowing: where a single operation's operands leave no doubt that it does not fit into `available` bytes it is those
// operands' size, and where even all values of the graph side by side are a small part of them it is that sum.
// TooLarge (base/checked.h) for a tensor that no machine could hold; BadInput where the model refuses that many.
StepMemory step_memory(const Model& model, std::int64_t samples, std::size_t available);

}  // namespace echelon::models
