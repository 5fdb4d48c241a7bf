// Native: the MPI library's own MPI_Allreduce, with whatever it knows about the machine. How many messages that takes
// is its own business; none of them are Echelon's.

#include <algorithm>

#include "collective/algorithms.h"

namespace echelon {

namespace {

void run(Group&, Numbers, Reduction) {}

Traffic traffic(const Case&) { return {}; }

// What it is said to do: the fewest steps for small numbers, the fewest bytes for large ones.
double seconds(double bytes, int n, const Link& l) {
  return std::min(recursive_doubling_all_reduce.seconds(bytes, n, l), rabenseifner_all_reduce.seconds(bytes, n, l));
}

std::string_view refuses(Group&) { return "this world is not MPI"; }

}  // namespace

const Algorithm native_all_reduce{.name = "native",
                                  .about = "the MPI library's MPI_Allreduce",
                                  .run = run,
                                  .traffic = traffic,
                                  .seconds = seconds,
                                  .refuses = refuses};

}  // namespace echelon
