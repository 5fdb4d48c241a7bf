#pragma once
// What communication costs among the members of a group: the constants that `auto` and the planner put into each
// algorithm's `seconds`. Measured once per group and agreed upon, so that all members choose alike.

#include <cstddef>
#include <vector>

namespace echelon {

class Group;

struct LinkCosts {
  double latency = 1e-5;       // seconds until a small message has arrived; between hosts if there are several
  double per_byte = 1e-9;      // seconds for each further byte
  double host_latency = 1e-6;  // the same between ranks on one host
  double host_per_byte = 2e-10;
  double combine_per_byte = 1e-10;  // adding a byte of data that is in the cache
  double barrier = 0;               // a barrier of all members in shared memory; 0: there is none
  double memory_per_byte = 2e-10;   // reading or writing a byte of another member's shared memory
  int hosts = 1;                    // over which the members are spread
};

// Collective: measures with a few messages of the group's own. Uses the world's clock, so it works on virtual time too.
LinkCosts measure_link_costs(Group& group);
// What messages between two members cost.
struct PairCost {
  double latency = 0, per_byte = 0;  // in seconds
};
// Collective: every pair exchanges messages, one after the other. By member; zeros for the caller itself.
std::vector<PairCost> measure_pairs(Group& group);

// As measure_link_costs, measured at the first call and then remembered by the group.
const LinkCosts& link_costs(Group& group);

}  // namespace echelon
