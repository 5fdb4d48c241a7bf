#pragma once
// A CSV file of numbers for a network that was not trained on a table: every row is one sample. A header and a column
// of labels are left out.

#include <string>
#include <vector>

#include "data/files/source.h"
#include "tensor/shape.h"

namespace echelon::cli {

struct NumberRowsFormat {
  char delimiter = ',';
  std::string label;  // the name of the column to leave out, if the header has it
  Shape sample;       // what the network reads
};

// The numbers of all rows, one row after the other. BadInput that names every cell that is none.
std::vector<float> read_number_rows(const data::Source& source, const NumberRowsFormat& format);

}  // namespace echelon::cli
