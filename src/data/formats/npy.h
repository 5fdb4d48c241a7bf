#pragma once
// NumPy's array file: a magic, a version, a header that is a Python dictionary in text, then the numbers. Only plain
// numbers in row-major order are read: whole numbers, float32, float64, booleans, in either byte order. Objects (which
// would be pickled Python, that is, code) are refused.

#include "data/array.h"

namespace echelon::data {

// BadInput naming the offset if the bytes are not exactly one such array. The first dimension counts the samples.
Array read_npy(SourcePtr source);

// The same from a file, gzipped or not: no more is unpacked than its header declares.
Array open_npy(Disk& disk, const std::string& path);

// The bytes of a whole NPY file, as the header at its beginning declares them.
std::uint64_t declared_npy_bytes(const Source& beginning);

// The header of an array as NumPy writes it (version 1.0): for writing.
std::string npy_header(std::string_view descr, const std::vector<std::uint64_t>& shape);

}  // namespace echelon::data
