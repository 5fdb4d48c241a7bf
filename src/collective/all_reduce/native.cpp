// Native: the MPI library's own MPI_Allreduce, with whatever it knows about the machine. AllReduceOptions many messages
// that takes is its own business; none of them are Echelon's.

#include <algorithm>

#include "base/error.h"
#include "collective/algorithms.h"
#include "collective/combine.h"

namespace echelon {

namespace {

void run(Group& group, TypedSpan data, Reduction reduction) {
  const int op = reduction == Reduction::mean ? static_cast<int>(Reduction::sum) : static_cast<int>(reduction);
  if (!group.world().native_all_reduce(data.data, data.count, static_cast<int>(data.type), op))
    fail("MPI cannot reduce numbers of type {}", to_string(data.type));
  if (reduction == Reduction::mean) divide(data.type, data.data, data.count, group.size());
}

Traffic traffic(const TrafficQuery&) { return {}; }

// What it is said to do: the fewest steps for small numbers, the fewest bytes for large ones.
double seconds(double bytes, int n, const Link& l) {
  return std::min(recursive_doubling_all_reduce.seconds(bytes, n, l), rabenseifner_all_reduce.seconds(bytes, n, l));
}

std::string_view refuses(Group& group) {
  if (group.world().place().world != "mpi") return "this world is not MPI";
  return group.size() == group.world().size() ? "" : "it is for all ranks of the world";
}

}  // namespace

const Algorithm native_all_reduce{.name = "native",
                                  .about = "the MPI library's MPI_Allreduce",
                                  .run = run,
                                  .traffic = traffic,
                                  .seconds = seconds,
                                  .refuses = refuses};

}  // namespace echelon
