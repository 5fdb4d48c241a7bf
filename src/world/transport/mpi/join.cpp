#include "world/transport/mpi/join.h"

#include <cstdio>
#include <optional>

#include "world/os/host.h"
#include "world/transport/mpi/library.h"
#include "world/transport/mpi/mpi_world.h"
#include "world/transport/rank_result.h"

namespace echelon {

namespace {

using namespace echelon::mpi;  // NOLINT: this file is the api of that namespace

void run(EchelonMpiApi& api, const LaunchOptions& launch, const Program& program, const MpiOptions& options) {
  std::optional<MpiWorld> made;
  try {
    made.emplace(api, launch, options);
  } catch (const std::exception& e) {
    // The other ranks wait inside MPI for this one; only MPI can end that.
    std::fprintf(stderr, "rank %d: %s\n", api.rank, e.what());
    std::fflush(nullptr);
    api.abort(1);
    throw;
  }
  MpiWorld& world = *made;
  try {
    try {
      program(world);
    } catch (const PeerLost& e) {
      if (world.failed()) throw;
      world.abort(e.what());
      throw Failure(e.what());
    } catch (const std::exception& e) {
      world.abort(e.what(), kind_of(e));
      throw;
    }
    world.finish();
  } catch (...) {
    world.make_progress();
    world.end_after_failure(launch.grace_seconds);
    throw;
  }
}

}  // namespace

void join_mpi(const LaunchOptions& launch, const Program& program, const MpiOptions& options) {
  EchelonMpiApi& api = mpi::start();
  struct Finish {
    EchelonMpiApi& api;
    ~Finish() { api.finish(); }
  } const finish{api};
  as_rank(api.rank, [&] { run(api, launch, program, options); });
}

bool started_by_mpi(const ReadVariable& variable) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"}) {
    if (!variable(name).empty()) return true;
  }
  return false;
}

bool started_by_mpi() {
  return started_by_mpi([](const std::string& name) { return environment(name); });
}

}  // namespace echelon
