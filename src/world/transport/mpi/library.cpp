#include "world/transport/mpi/library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "world/os/host.h"

namespace echelon::mpi {

namespace {

std::vector<std::string> places() {
  if (const std::string said = environment("ECHELON_MPI_PLUGIN"); !said.empty()) return {said};
  const std::string here = program_directory(), name = "libechelon_mpi.so";
  // Beside the program, as built; one up, for the tests; where `cmake --install` puts it.
  return {here + "/" + name, here + "/../" + name, here + "/../lib/echelon/" + name,
          here + "/../lib/x86_64-linux-gnu/echelon/" + name};
}

}  // namespace

std::string plugin_file() {
  for (const std::string& place : places())
    if (::access(place.c_str(), R_OK) == 0) return place;
  return "";
}

void check(const EchelonMpiApi& api, int error, const char* what) {
  if (error == 0) return;
  char text[512];
  api.explain(error, text, sizeof text);
  fail("MPI: {}: {}", what, text);
}

EchelonMpiApi& start() {
  std::string tried;
  void* library = nullptr;
  for (const std::string& place : places()) {
    // Global: Open MPI loads parts of itself that look for its symbols.
    library = ::dlopen(place.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library) break;
    tried += std::string("\n  ") + ::dlerror();
  }
  if (!library) {
    bad_input("no MPI here: libechelon_mpi.so cannot be loaded (built when libopenmpi-dev is installed):{}", tried);
  }
  using GetApi = EchelonMpiApi* (*)();
  const auto get = reinterpret_cast<GetApi>(::dlsym(library, "echelon_mpi_api"));
  EchelonMpiApi* const api = get ? get() : nullptr;
  if (!api || api->version != echelon_mpi_api_version) {
    bad_input("libechelon_mpi.so belongs to another version of Echelon: build both together");
  }
  check(*api, api->start(), "cannot start");
  return *api;
}

}  // namespace echelon::mpi
