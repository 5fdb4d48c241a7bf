#pragma once
// The rule and the exchange of Sandblaster L-BFGS as parts of a composition: they go with each other alone.

#include "parallel/sandblaster/engine.h"

namespace echelon {

// For a composition whose exchange coordinates and that has been checked.
SandblasterSettings sandblaster_settings(const Composition& composition);

}  // namespace echelon
