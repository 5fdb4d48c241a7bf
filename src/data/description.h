#pragma once
// What the samples of a data set are, apart from the samples: fields, classes, targets. A run's folder keeps it,
// so that a trained network can be asked without the data that it was trained on.

#include <string_view>

#include "base/json.h"
#include "data/decorators.h"

namespace echelon::data {

// All of `info` that a model, and the meaning of its answers, depends on; without the encoder of a table and
// the vocabulary of a text, which have files of their own.
Json describe(const DatasetInfo& info);

// What `describe` wrote; BadInput naming `where` if it is not that.
DatasetInfo read_description(const Json& json, std::string_view where);

// A data set of which only this is known: asking it for a sample is a BadInput.
DatasetPtr described_samples(DatasetInfo info);

}  // namespace echelon::data
