#pragma once
// From a recipe's [data] table to data sets. `kind` says what the data are: a format (idx, cifar10, cifar100, npy, npz,
// csv, images, tar, text, synthetic, memory) or the name of a known set (digits, mnist, ...: data/files/catalog.h),
// each with options of its own; docs/data.md lists them. Reading the options touches no file and reports every problem
// at once; opening reads the files.
//
// Options of all kinds:
//   path       the file or directory
//   validation, test, split, folds, ...    how the samples are cut into parts (data/parts.h)
//   holdout    an older way to say test = SHARE: the cut does not look at classes
//   limit      use only so many samples of the split "train" (limit_test: "test")
//   partition, dirichlet    whether workers keep their samples (data/partition.h)
//   cache      keep decoded samples in memory: worth it for pictures
//   transform  a list of tables, in order: {kind = "crop", pad = 4}, {kind = "flip"}, ... (data/images/transform.h)

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/options.h"
#include "data/decorators.h"
#include "data/images/transform.h"
#include "data/partition.h"
#include "data/parts.h"
#include "world/os/disk.h"

namespace echelon::data {

// There are no samples of their own for a split.
class NoSplit : public BadInput {
 public:
  using BadInput::BadInput;
};

using MemoryParts = std::map<std::string, DatasetPtr>;  // by split

// Where data sets are looked for by name.
struct DataPlaces {
  std::string root = "data";                   // those that were fetched: root/NAME
  std::vector<std::string> share = {"share"};  // those that came with the program: the first that has NAME
  MemoryParts memory = {};                     // those that the calling program holds (data/memory.h)
};
DataPlaces usual_places();  // $ECHELON_DATA or data; ./share, and the share directory that belongs to the program

class DataSpec {
 public:
  // The data set of a split: "train", "validation" (if has_validation) or "test". With `augment` every transform is
  // applied; without, only the calm ones (normalise, copy, and a crop's middle). Not shuffled. `disk` must outlive the
  // data set.
  DatasetPtr open(Disk& disk, const std::string& split, bool augment) const;
  DatasetPtr open(Disk& disk, const std::string& split) const { return open(disk, split, split == "train"); }

  // The two halves of that: the samples before any transform, and samples from elsewhere (a picture to be classified)
  // as a network that was trained on this data would see them.
  DatasetPtr open_plain(Disk& disk, const std::string& split) const;
  DatasetPtr transformed(DatasetPtr plain, bool augment) const;

  const std::string& kind() const { return kind_; }
  const PartsSpec& parts() const { return parts_; }
  const PartitionSpec& partition() const { return partition_; }
  bool has_validation() const { return parts_.has_validation() || open_validation_; }

 private:
  DatasetPtr open_part(Disk& disk, const std::string& split) const;  // as it is read: a table's rows are not encoded

  friend DataSpec read_data_spec(OptionReader& table, const DataPlaces& places);
  using Open = std::function<DatasetPtr(Disk& disk, const std::string& split)>;
  // Samples of another path, with the classes of those that train.
  using OpenOther = std::function<DatasetPtr(Disk& disk, const Dataset& train)>;
  using MakeTransform = std::function<TransformPtr(bool augment)>;  // null: nothing to do

  std::string kind_;
  Open open_;
  OpenOther open_validation_, open_test_;  // where they have a path of their own
  PartsSpec parts_;
  PartitionSpec partition_;
  std::vector<MakeTransform> transforms_;
  double mixup_ = 0;  // alpha; 0: none
  double holdout_ = 0;
  bool cuts_itself_ = false;
  std::uint64_t limit_train_ = 0, limit_test_ = 0, cache_limit_ = 0;
};

// Reads and checks a [data] table; problems are added to the reader's. The result must not be opened if there were any.
DataSpec read_data_spec(OptionReader& table, const DataPlaces& places = usual_places());

// Both steps at once; BadInput with all problems.
DatasetPtr open_dataset(Disk& disk, const Options& table, const std::string& split,
                        const DataPlaces& places = usual_places());

}  // namespace echelon::data
