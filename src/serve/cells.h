#pragma once
// The cells of a table's column in a request: text, each behind its length in four bytes, as the protocol writes BYTES.
// An empty cell is a missing one. Reading trusts nothing; BadInput for what does not fit. Pure functions.

#include <string_view>
#include <vector>

#include "base/json.h"
#include "serve/batcher.h"

namespace echelon::serve {

void add_cell(Rows& rows, std::string_view text);
std::vector<std::string_view> cells_of(const Rows& rows);  // of what add_cell and the two below made

// `data` has `samples` strings, numbers, truth values or nulls (a missing cell).
Rows read_cells(const Json& data, const Field& field, std::int64_t samples);
// Tensors as bytes: BYTES, FP32, FP64, INT32, INT64 or BOOL.
Rows read_cells(std::string_view bytes, std::string_view datatype, const Field& field, std::int64_t samples);

}  // namespace echelon::serve
