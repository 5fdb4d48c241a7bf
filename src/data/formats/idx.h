#pragma once
// IDX, the format of MNIST: two zero bytes, a type byte, the number of dimensions, the extents (32 bits, big-endian),
// then the numbers, big-endian. Packed with gzip or not.

#include "data/array.h"

namespace echelon::data {

// The array in an IDX file. BadInput naming the offset if the bytes are not exactly one.
Array read_idx(SourcePtr source);

// The same from a file that is there, packed or not: no more is unpacked than its header declares.
// With `samples`, BadInput before anything is unpacked if its header says that it has another number of them.
Array open_idx_file(Disk& disk, const std::string& path, std::optional<std::uint64_t> samples = {});

// Images and labels under the names that MNIST gave them: DIR/train-images-idx3-ubyte and so on ("t10k" for the split
// "test"), each also with .gz. Class names from DIR/classes.txt, if it is there.
std::shared_ptr<const Dataset> open_idx(Disk& disk, const std::string& directory, const std::string& split,
                                        const ArrayOptions& options);

}  // namespace echelon::data
