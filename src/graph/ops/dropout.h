#pragma once
// Dropout, keyed by (seed, step, shard, layer): the same elements are dropped whoever computes the shard.

#include "graph/graph.h"

namespace echelon::ops {

// Zeroes each element with probability `p` and scales the rest by 1 / (1 - p). In a graph that does not train: x
// itself.
Value dropout(Graph& g, Value x, float p);

// Standard normal noise of a given shape, fresh each step (a GAN's latent vectors, a denoising autoencoder's noise).
Value normal_noise(Graph& g, Shape shape);

}  // namespace echelon::ops
