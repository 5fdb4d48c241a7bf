#pragma once
// NumPy's archive of named arrays: a ZIP file of NPY files.

#include <map>

#include "data/array.h"

namespace echelon::data {

// The arrays by name (without ".npy"). Only those named in `wanted` are unpacked, or all if it is empty.
std::map<std::string, Array> read_npz(SourcePtr source, const std::vector<std::string>& wanted = {});

// The names in it, without unpacking anything.
std::vector<std::string> npz_names(const Source& source);

}  // namespace echelon::data
