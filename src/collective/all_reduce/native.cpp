// Native: the MPI library's own MPI_Allreduce, with whatever it knows about the machine. Its messages are not counted:
// none of them are Echelon's.

#include <algorithm>

#include "base/error.h"
#include "collective/algorithms.h"
#include "collective/combine.h"

namespace echelon {

namespace {

void run_native(Group& group, TypedSpan data, Reduction reduction) {
  const int op = reduction == Reduction::mean ? static_cast<int>(Reduction::sum) : static_cast<int>(reduction);
  if (!group.world().native_all_reduce(data.data, data.count, static_cast<int>(data.type), op))
    fail("MPI cannot reduce elements of type {}", to_string(data.type));
  if (reduction == Reduction::mean) divide(data.type, data.data, data.count, group.size());
}

MemberTraffic native_traffic(const AllReduceShape&) { return {}; }

// What MPI libraries usually do: the fewest steps for small data, the fewest bytes for large data.
double native_seconds(double bytes, int n, const LinkCosts& l) {
  return std::min(find_algorithm("recursive-doubling").seconds(bytes, n, l),
                  find_algorithm("rabenseifner").seconds(bytes, n, l));
}

std::string_view why_not_native(Group& group) {
  if (group.world().place().world != "mpi") return "this world is not MPI";
  return group.size() == group.world().size() ? "" : "it is for all ranks of the world";
}

}  // namespace

Algorithm native_all_reduce() {
  return {.name = "native",
          .about = "the MPI library's MPI_Allreduce",
          .run = run_native,
          .traffic = native_traffic,
          .seconds = native_seconds,
          .why_not = why_not_native};
}

}  // namespace echelon
