#pragma once
// The plugin libechelon_mpi.so and MPI behind it, for the rest of the process's life.

#include "world/transport/mpi/api.h"

namespace echelon::mpi {

// Loads the plugin and starts MPI. BadInput naming the places that were looked at, or MPI's own words.
EchelonMpiApi& start();

// Failure with MPI's words if `error` is one.
void check(const EchelonMpiApi& api, int error, const char* what);

}  // namespace echelon::mpi
