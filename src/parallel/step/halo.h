#pragma once
// A graph spread over workers (data.partition = "fixed"): each has the features of a part of the nodes, cut out
// so that neighbours are together (data/graph/node_graph.h). What a worker's samples need of the others' nodes, the
// halo, it gets from them once, in messages, before the first step.

#include "data/decorators.h"
#include "data/partition.h"
#include "parallel/team/team.h"

namespace echelon {

struct Halo {
  std::uint64_t own = 0, borrowed = 0;  // nodes whose features this worker has, and has got from others
};

// The worker's samples, made from what it holds; `inner` if they are of no graph, or do not stay with their worker.
// Collective.
data::DatasetPtr with_halo(data::DatasetPtr inner, const data::BatchSequence& batches,
                           const data::PartitionSpec& partition, Team& team, Halo* counted = nullptr);

}  // namespace echelon
