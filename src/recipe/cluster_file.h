#pragma once
// The cluster of a simulation and what goes wrong in it, read from TOML. docs/simulation.md lists the keys;
// recipes/clusters has examples. Units are in the keys' names: gbit is 10^9 bits a second, us microseconds.
//
// BadInput naming the file and every problem with its line and cure. No state; thread-safe.

#include <string>
#include <string_view>

#include "world/os/disk.h"
#include "world/sim/cluster.h"
#include "world/sim/faults.h"

namespace echelon {

struct ClusterFile {
  SimCluster cluster;
  FaultPlan faults;  // from [faults]; none if there is no such table
};

ClusterFile parse_cluster(std::string_view text, const std::string& file);
ClusterFile read_cluster(Disk& disk, const std::string& path);

}  // namespace echelon
