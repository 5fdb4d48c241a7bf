#pragma once
// Samples with wrong classes, for experiments with workers that poison a training: class k is called classes - 1 - k.
#include "data/decorators.h"

namespace echelon::data {

// BadInput for samples without one class each.
DatasetPtr labels_flipped(DatasetPtr inner);

}  // namespace echelon::data
