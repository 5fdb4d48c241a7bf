#pragma once
// What communication costs among the members of a group: the numbers that `auto` and the planner put into each
// algorithm's `seconds`. Measured once per group (calibrate.cpp) and agreed, so that all members choose alike.

#include <cstddef>

namespace echelon {

class Group;

struct Link {
  double latency = 1e-5;       // seconds until a small message has arrived; between hosts if there are several
  double per_byte = 1e-9;      // seconds for every byte more
  double host_latency = 1e-6;  // the same between ranks on one host
  double host_per_byte = 2e-10;
  double combine_per_byte = 1e-10;  // adding a byte's worth of numbers that is at hand
  double meet = 0;                  // a meeting of all in shared memory; 0: there is none
  double touch_per_byte = 2e-10;    // reading or writing a byte of somebody's shared memory
  int hosts = 1;                    // over which the members are spread
};

// Collective: measures with a few messages of the group's own. Uses the world's clock, so it works on virtual time too.
Link measure_link(Group& group);
// The same, remembered.
const Link& link_of(Group& group);

}  // namespace echelon
