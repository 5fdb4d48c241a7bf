#pragma once
// One rank of a job on a network, from joining to the end of its program.

#include "world/transport/tcp/mesh.h"

namespace echelon::tcp {

// Connects to all other ranks (throws PeerLost, operation "joining"), runs the program, and waits until the programs of
// all others have ended. If the program throws, the others are told before the exception goes on.
void run_rank(const RankConfig& config, const Program& program);

}  // namespace echelon::tcp
