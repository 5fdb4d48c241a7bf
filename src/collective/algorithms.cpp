#include "collective/algorithms.h"

#include <array>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace echelon {

// Each is defined in all_reduce/NAME.cpp.
Algorithm direct_all_reduce();
Algorithm ring_all_reduce();
Algorithm owners_all_reduce();
Algorithm rabenseifner_all_reduce();
Algorithm recursive_doubling_all_reduce();
Algorithm binomial_all_reduce();
Algorithm double_tree_all_reduce();
Algorithm hierarchical_all_reduce();
Algorithm native_all_reduce();

// `auto` takes the first of those with the shortest predicted time.
std::span<const Algorithm> all_reduce_algorithms() {
  static const std::array table{
      direct_all_reduce(),
      ring_all_reduce(),
      owners_all_reduce(),
      rabenseifner_all_reduce(),
      recursive_doubling_all_reduce(),
      binomial_all_reduce(),
      double_tree_all_reduce(),
      hierarchical_all_reduce(),
      native_all_reduce(),
  };
  return table;
}

const Algorithm& find_algorithm(std::string_view name) {
  for (const Algorithm& a : all_reduce_algorithms())
    if (a.name == name) return a;
  std::vector<std::string> names;
  for (const Algorithm& a : all_reduce_algorithms()) names.emplace_back(a.name);
  bad_input("there is no all-reduce algorithm '{}'{} (known: auto, {})", name, did_you_mean(name, names),
            fmt::join(names, ", "));
}

}  // namespace echelon
