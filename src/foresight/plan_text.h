#pragma once
// A plan as the text of a file that `--plan FILE.toml` takes. Reading it again gives the same plan. Pure functions.

#include <string>

#include "plan/spec.h"

namespace echelon::foresight {

// `about`: lines of comment above it.
std::string plan_toml(const PlanSpec& plan, const std::string& about = {});

}  // namespace echelon::foresight
