#pragma once
// Bugs that tests plant in the code of membership, to prove that its simulation would notice them (as
// world/sim/planted_bugs.h). Everywhere else none is set. `grep bugs.NAME` finds the one place of each.

namespace echelon {

struct MemberBugs {
  // member/membership.cpp
  bool form_beside_running = false;  // the next generation forms while nodes are still in the current one
  bool form_too_few = false;         // ... or with fewer nodes than the least
  bool form_too_many = false;        // ... or with more than the most
  bool keep_generation = false;      // a new generation has the number of the old one
  bool keep_session = false;         // ... or its session, so that ranks of the old one are let in
  bool oldest_state_first = false;   // the node with the oldest state becomes the first
  // member/agent.cpp
  bool never_renew = false;           // leases run out
  bool never_evict = false;           // a node whose lease has run out stays
  bool evict_living = false;          // nodes are evicted whose lease is good
  bool never_suspect = false;         // a node that is not ready for long is waited for
  bool suspect_from_outside = false;  // a node that was never in the generation says that it has stopped
  bool no_last_call = false;          // the first generation forms as soon as the least nodes are there
  bool no_fence = false;              // ranks do steps though their launcher has not kept the lease
  bool blind_write = false;           // writes without comparing
  bool old_step = false;              // a node tells the step at which it joined, not the one that it holds
  bool ready_while_running = false;   // a node says that it is ready while its ranks still run
  bool ignore_newcomers = false;      // the running generation does not stop for a node that waits
  bool ignore_end = false;            // a node does not see that the job is over
  bool start_broken = false;          // a node starts its ranks in a generation that others have left already
  bool start_twice = false;           // a node starts its ranks again in a generation that it has been in
  bool first_call_only = false;       // a node that found no room to join does not try again
};

}  // namespace echelon
