#include "collective/algorithms.h"

#include <array>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace echelon {

// Two that should take equally long: the earlier one is taken.
std::span<const Algorithm> all_reduce_algorithms() {
  static const std::array table{
      direct_all_reduce,
      ring_all_reduce,
      owners_all_reduce,
      rabenseifner_all_reduce,
      recursive_doubling_all_reduce,
      binomial_all_reduce,
      double_tree_all_reduce,
      hierarchical_all_reduce,
      native_all_reduce,
  };
  return table;
}

const Algorithm& find_algorithm(std::string_view name) {
  std::vector<std::string> names;
  for (const Algorithm& a : all_reduce_algorithms()) {
    if (a.name == name) return a;
    names.emplace_back(a.name);
  }
  bad_input("there is no all-reduce algorithm '{}'{} (known: auto, {})", name, did_you_mean(name, names),
            fmt::join(names, ", "));
}

}  // namespace echelon
