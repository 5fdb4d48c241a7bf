#pragma once
// Whether a network may leave out rows of zeros in front of its sequences (InputSpec::left_padded).

#include <string>

#include "models/model.h"

namespace echelon::models {

// Why it may not; empty if it may. Runs the network on a row with zeros in front and on the row alone, with weights and
// biases that are not zero: the answers must be the same.
std::string left_padding_refusal(const Model& model);

}  // namespace echelon::models
