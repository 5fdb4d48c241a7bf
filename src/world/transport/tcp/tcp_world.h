#pragma once
// One rank of a job on a network: a connection to every other rank and a thread that moves the bytes.

#include <memory>
#include <string>

#include "world/launch.h"
#include "world/transport/tcp/rendezvous.h"

namespace echelon::tcp {

struct RankConfig {  // where a rank sits
  int rank = 0;
  JobTable table;
  int listener = -1;             // a listening socket at the table's port; the world closes it
  Credentials credentials;       // of the job; the world derives that of the session from it
  double mesh_seconds = 20;      // for all connections to be made
  double silence_seconds = 2.2;  // after which a rank is lost
  double beat_seconds = 0.4;
  bool share_memory = true;  // with ranks of the same machine
  LaunchOptions launch;
};

// Connects with all others (throws PeerLost, operation "joining"), runs the program, waits until all others have ended
// theirs. If the program throws, the others are told before the exception goes on.
void run_rank(const RankConfig& config, const Program& program);

}  // namespace echelon::tcp
