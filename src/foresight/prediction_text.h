#pragma once
// A prediction in sentences, for people. Pure functions.

#include <string>
#include <vector>

#include "foresight/costs/platform.h"
#include "foresight/prediction.h"

namespace echelon::foresight {

// Who waits longest and for whom, which link carries most, and what the rank with the most memory needs it for.
std::vector<std::string> details_of(const Prediction& prediction, const Platform& platform);

}  // namespace echelon::foresight
