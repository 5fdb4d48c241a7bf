#pragma once
// Loads the plugin libechelon_mpi.so and MPI behind it, which stay until the process ends.

#include <string>

#include "world/transport/mpi/api.h"

namespace echelon::mpi {

// Loads the plugin and starts MPI. BadInput naming the paths that were tried; Failure with MPI's text.
EchelonMpiApi& start();

// The plugin's file, without loading it; empty if it is nowhere.
std::string plugin_file();

// Failure with MPI's text if `error` is one.
void check(const EchelonMpiApi& api, int error, const char* what);

}  // namespace echelon::mpi
