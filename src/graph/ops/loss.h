#pragma once
// Losses. Each returns the SUM over the samples; the trainer divides once, by the global count
// (StepContext::loss_scale), so that micro-batches of any size and any accumulation give the gradient of the big batch.

#include <vector>

#include "graph/graph.h"

namespace echelon::ops {

struct Classified {
  Value loss;     // [1], summed
  Value correct;  // [1], how many rows have their largest logit at the target
};

// logits[rows, classes]; targets[rows] i32, negative ones are ignored.
Classified cross_entropy(Graph& g, Value logits, Value targets, float label_smoothing = 0);

// The same with a weight for each class (kernels/loss/loss.h) and the focal factor (1 - p)^gamma, which excludes
// smoothing.
struct ClassWeighting {
  std::vector<float> classes = {};  // empty: all 1
  float focal_gamma = 0;
};
Classified weighted_cross_entropy(Graph& g, Value logits, Value targets, float label_smoothing,
                                  const ClassWeighting& weighting);

// Pinball loss, summed: x[rows, targets * levels] has for each target of t[rows, targets] one value a level (between 0
// and 1), side by side. The target gets no gradient.
Value quantile_loss(Graph& g, Value x, Value target, const std::vector<float>& levels);

enum class Distance { mse, l1, huber, bce_with_logits };
// Summed over all elements (halved nowhere); `parameter` is Huber's delta. The target gets no gradient.
Value distance_loss(Graph& g, Distance kind, Value x, Value target, float parameter = 1.0f);

}  // namespace echelon::ops
