#pragma once
// Sequence parallelism (Korthikanti et al., 2022), plan key `sequence`: what stands between layers that are split over
// the parts of a stage and works on each row by itself (norms, dropout, residual sums) is computed by every part for
// its own rows only. A sum over slices is handed out by rows (reduce-scatter), and rows are put together again where
// something needs all of them (all-gather): as many bytes as the sum over all parts, but less to compute and to keep.
//
// The bits are the same: rows are computed by the same kernels, masks of dropout are counted from the first row, and
// what a norm's scale and shift get from the rows is added up from part to part in the order of the rows. A later part
// does that some norms later, so that it does not wait. Pure functions.

#include "graph/graph.h"
#include "plan/place.h"
#include "plan/stages.h"

namespace echelon {

// `graph` as optimise() gives it; before spread_sums() (plan/joins.h).
Graph spread_rows(const Graph& graph, const StagePartition& partition, const PartCounts& counts);

}  // namespace echelon
