#pragma once
// Named numbers about a run, for people and tests.

#include <string>
#include <utility>

namespace echelon {

using Figure = std::pair<std::string, double>;

}  // namespace echelon
