#pragma once
// In which settings two recipes differ, for people: what a refused --resume and `echelon runs compare` say.

#include <string>
#include <vector>

#include "base/options.h"

namespace echelon {

struct Difference {
  std::string key;            // "optim.lr", "model.layers[2].out"
  std::string first, second;  // as TOML writes them; "-" where a recipe does not have the key
};

// In the order of keys. Where the settings were written, and the title, do not count.
std::vector<Difference> differences(const Options& first, const Options& second);

}  // namespace echelon
