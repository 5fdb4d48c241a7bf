#pragma once
// Every network of the zoo in a small size, and layers that no network of the zoo has: what export is judged on.

#include <string>
#include <vector>

#include "models/zoo.h"

namespace echelon::test {

struct SmallNetwork {
  std::string model;
  models::InputSpec inputs;
  std::string options;     // of [model], as TOML
  std::int64_t batch = 0;  // of the file; 0: open
};

std::vector<SmallNetwork> small_networks();

}  // namespace echelon::test
