#pragma once
// In which settings recipes differ, for people: what a refused --resume and `echelon runs compare` say.

#include <string>
#include <vector>

#include "base/options.h"

namespace echelon {

struct Difference {
  std::string key;            // "optim.lr", "model.layers[2].out"
  std::string first, second;  // as TOML writes them; "-" where a recipe does not have the key
};

// The same for any number of recipes: the keys that are not the same in all of them, with what each says.
struct DifferingKey {
  std::string key;
  std::vector<std::string> values;  // one a recipe
};
std::vector<DifferingKey> differing_keys(const std::vector<Options>& recipes);

// In the order of keys. Where the settings were written, and the title, do not count.
std::vector<Difference> differences(const Options& first, const Options& second);

}  // namespace echelon
