#pragma once
// Pictures in one directory for each class: DIR/SPLIT/CLASS/*.png|jpg|jpeg, or DIR/CLASS/* if there is no DIR/SPLIT.
// Classes are those of the split train, numbered in the order of their names. Pictures are decoded when they are asked
// for (put `cached` above to do it once), and all brought to one extent.

#include <optional>

#include "data/dataset.h"
#include "data/images/image.h"
#include "world/os/disk.h"

namespace echelon::data {

struct ImageOptions {
  std::optional<ImageExtent> extent;  // none: that of the first picture to train with
  int channels = 3;                   // 1: grey
  Fit fit = Fit::stretch;
};

// True if a file of this name is taken for a picture.
bool is_picture(std::string_view name);

// `disk` must outlive the data set. The fingerprint covers names and files.
std::shared_ptr<const Dataset> open_image_folder(Disk& disk, const std::string& path, const std::string& split,
                                                 const ImageOptions& options);

// Whether `path` has a directory of its own for the split.
bool has_split(Disk& disk, const std::string& path, const std::string& split);

}  // namespace echelon::data
