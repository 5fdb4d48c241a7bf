#pragma once
// Samples that stay with their worker. Usually every epoch deals the samples out anew, so that each worker sees other
// ones. With a fixed partition each of n workers (parts of a batch, data/loader.h) has a set of samples of its own and
// never sees another one: what gossip learning and federated training assume.
//
// Of a [data] table:
//   partition   "epoch" (every epoch anew), or "fixed"
//   dirichlet   with "fixed": how unlike the parts are. Every part draws the shares of its classes from a Dirichlet
//               distribution with this parameter times the shares in all samples (Hsu et al. 2019): 100 leaves all
//               parts alike, 0.1 gives most of them one or two classes. 0: samples are drawn whatever their class
//
// Which sample is whose is a pure function of (samples, sizes, dirichlet), the order within a part one of (seed,
// epoch).

#include <cstdint>
#include <vector>

#include "base/options.h"
#include "data/cursor.h"
#include "data/decorators.h"

namespace echelon::data {

struct PartitionSpec {
  bool fixed = false;
  double dirichlet = 0;
};

// Problems are added to the table's.
PartitionSpec read_partition(OptionReader& table);

// How many samples each of `parts` workers uses in an epoch of such batches, all of one size.
std::vector<std::uint64_t> part_sizes(const BatchSequence& batches, std::uint64_t parts);

// Which samples each part has. Of a graph's nodes, neighbours are together (data/graph/node_graph.h).
std::vector<std::vector<std::uint64_t>> samples_of_parts(const Dataset& inner, const std::vector<std::uint64_t>& sizes,
                                                         double dirichlet);

// The samples of part 0, then those of part 1, ...: each part is shuffled in every epoch, and stays what it is. The
// sizes add up to at most the number of samples. BadInput if there are no classes to be unlike in.
DatasetPtr partitioned(DatasetPtr inner, const std::vector<std::uint64_t>& sizes, double dirichlet);

}  // namespace echelon::data
