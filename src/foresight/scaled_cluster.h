#pragma once
// A cluster file's machines for another number of workers: its first ranks, or copies of all of it, each with switches
// of its own. Pure functions.

#include "world/sim/cluster.h"

namespace echelon::foresight {

SimCluster scaled_cluster(const SimCluster& cluster, int workers);

}  // namespace echelon::foresight
