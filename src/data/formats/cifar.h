#pragma once
// CIFAR-10 and CIFAR-100 in their binary form: records of one label byte (CIFAR-100: coarse and fine) and 3,072 bytes,
// the 32 x 32 pixels of red, green and blue.

#include "data/array.h"

namespace echelon::data {

struct CifarOptions {
  bool hundred = false;  // CIFAR-100
  bool coarse = false;   // CIFAR-100 by its 20 coarse classes
};

// One file of records. BadInput if its size is not a whole number of them, or a label is out of range.
std::shared_ptr<const Dataset> read_cifar(SourcePtr source, const CifarOptions& options);

// data_batch_1.bin .. data_batch_5.bin and test_batch.bin in `directory` (CIFAR-100: train.bin and test.bin); class
// names from batches.meta.txt or {fine,coarse}_label_names.txt if there.
std::shared_ptr<const Dataset> open_cifar(Disk& disk, const std::string& directory, const std::string& split,
                                          const CifarOptions& options);

}  // namespace echelon::data
