#pragma once
// Lets a world that is metered (world/wrappers/metered.h) record what its rank does in a ring of events.

#include "world/os/event_ring.h"
#include "world/world.h"

namespace echelon {

// What this rank does, sends and waits for is recorded from now on (null: no more); nothing in a world that is not
// metered. While no task uses the world.
void record_events(World& world, EventRing* ring);

}  // namespace echelon
