#pragma once
// LeNet-5 (LeCun et al. 1998) as it is trained today: ReLU and max pooling. Made for 28 x 28; larger images work too.

#include "models/network.h"

namespace echelon::models {

Value lenet5(nn::Net& net, Value x, std::int64_t classes);

std::unique_ptr<Model> make_lenet5(OptionReader& options, const InputSpec& inputs);

}  // namespace echelon::models
