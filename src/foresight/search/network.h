#pragma once
// From a network to a search problem, and from a strategy back to a plan that training takes.

#include <optional>

#include "foresight/layer_table.h"
#include "foresight/search/search.h"
#include "plan/legal.h"

namespace echelon::foresight {

// The layers of a network with what they cost on rank 0 of the platform, and its links as a hierarchy: ranks of a
// machine, machines of a switch, all. For a batch of all the table's micro-batches.
SearchProblem search_problem(const LayerTable& table, const Platform& platform);

// A plan that does what the strategy says, where there is one: stages with equally many replicas become a pipeline with
// cuts; layers that are data parallel at first and split from then on become one weird trick. None: no plan has that
// shape. `facts` say what is legal; the model needs as many slices as parts.
std::optional<PlanSpec> plan_of(const SearchProblem& problem, const Strategy& strategy, const PlanFacts& facts);

std::string to_string(const SearchProblem& problem,
                      const Strategy& strategy);  // "conv1 ... pool5: 8 replicas; fc6 ...: 8 parts"

}  // namespace echelon::foresight
