#pragma once
// A deep stacking network (Deng and Yu, 2011): modules of one hidden layer on top of each other. Each module sees the
// sample and what the module before it predicts, and is trained by its own error alone: no gradient goes from one
// module to another. So a module's weights do not depend on how many follow, and modules can be trained on different
// ranks.

#include "models/network.h"

namespace echelon::models {

std::unique_ptr<Model> make_deep_stacking(OptionReader& options, const InputSpec& inputs);

}  // namespace echelon::models
