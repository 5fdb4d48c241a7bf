#pragma once
// Cross-entropy whose classes are cut into slices: CrossEntropy (ops/loss.cpp) becomes these.

#include <memory>
#include <vector>

#include "graph/graph.h"
#include "graph/ops/loss.h"
#include "kernels/loss/class_scores.h"

namespace echelon::ops {

// (logits[rows, part.count], targets) -> what a slice says of its classes, [rows, 5] (kernels/loss/class_scores.h).
std::shared_ptr<const Op> class_scores_op(kernels::ClassPart part, float label_smoothing, bool training);

// The loss over all classes from what the slices said, in their order.
Classified join_class_scores(Graph& g, const std::vector<Value>& scores, Value targets,
                             const std::vector<kernels::ClassPart>& parts, float label_smoothing);

}  // namespace echelon::ops
