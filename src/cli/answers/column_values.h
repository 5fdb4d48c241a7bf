#pragma once
// The values of a table's column in words by which rows can be told apart: categories as they are, numbers with few
// different values too, others by quarters of the rows ("12 to 45"), dates by their year.

#include <cstdint>
#include <functional>
#include <string>

#include "data/table/open_table.h"

namespace echelon::cli {

// The value of a row. A column that the network leaves out is read from the file by itself. BadInput, with the nearest
// name, if the file has no such column. `file` must outlive the result.
std::function<std::string(std::uint64_t row)> value_texts(Disk& disk, const data::TableFile& file,
                                                          const std::string& column);

}  // namespace echelon::cli
