#pragma once
// Samples that are made of what a user hands in, for `echelon predict`: pictures, rows of numbers, the inputs of
// another data set. Each has the input fields alone; with_zeros adds the fields that nobody knows (a label).

#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/decorators.h"
#include "data/images/image.h"
#include "world/os/disk.h"

namespace echelon::cli {

// Samples with all fields of `like`: the first `count` are those of `inputs`, the others are zeros.
data::DatasetPtr with_zeros(data::DatasetInfo like, data::DatasetPtr inputs, std::size_t count);

// The first `count` fields of other samples.
data::DatasetPtr first_fields(data::DatasetPtr samples, std::size_t count);

// Rows of numbers that lie in memory, as many in a row as the field has elements.
data::DatasetPtr rows_of_numbers(const data::Field& field, std::vector<float> numbers);

// A picture file each, decoded when it is asked for and brought to the field's size. The disk must outlive them.
data::DatasetPtr picture_samples(Disk& disk, const data::Field& field, std::vector<std::string> paths, data::Fit fit);

// All pictures in a folder and the folders in it, in the order of names.
std::vector<std::string> pictures_below(Disk& disk, const std::string& folder);

}  // namespace echelon::cli
