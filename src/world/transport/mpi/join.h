#pragma once
// The MPI world: this process, started by mpirun or srun, becomes the rank that MPI gives it. Ranks of one machine
// exchange messages through shared memory, ranks of different machines through MPI (docs/cluster.md).
//
// MPI is loaded when `join_mpi` is called, from libechelon_mpi.so beside the program (or where ECHELON_MPI_PLUGIN
// says); programs that do not call it neither need nor load MPI.

#include "world/launch.h"
#include "world/os/environment.h"

namespace echelon {

struct MpiOptions {
  bool share_memory = true;  // with ranks of the same machine, instead of MPI's messages
};

// Returns when the program has ended on all ranks. BadInput if there is no plugin or no MPI; otherwise as in
// world/launch.h. May be called once in a process. If a rank fails, the others' waits throw PeerLost; if a rank does
// not come to a wait within `launch.grace_seconds`, MPI_Abort ends the job.
void join_mpi(const LaunchOptions& launch, const Program& program, const MpiOptions& options = {});

// Whether the environment looks as if mpirun or `srun --mpi=...` had started this process.
bool started_by_mpi(const ReadVariable& variable);
bool started_by_mpi();

}  // namespace echelon
