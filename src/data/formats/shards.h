#pragma once
// Samples in tar archives, as WebDataset writes them: the members of a sample follow each other and share their name up
// to the first dot; what follows the dot says what they are.
//   .png .jpg .jpeg   a picture         -> "image" f32 [channels, height, width]
//   .npy              an array          -> "features" f32 (or "image", if it has three dimensions)
//   .txt              bytes of text     -> "tokens" i32 [length], cut off or filled up with zeros
//   .cls              a class, as text  -> "label" i32
// Other members are left alone. A sample is read from its archive when it is asked for; opening looks at every header.

#include "data/formats/folder.h"

namespace echelon::data {

struct ShardOptions {
  ImageOptions image;
  std::int64_t length = 0;   // of text; needed if the samples are texts
  std::int64_t classes = 0;  // 0: as many as the largest label says
};

// `path` is one archive, or a directory: then its *.tar in the order of their names; those that begin with the split's
// name, if any does. `disk` must outlive the data set. The fingerprint covers all bytes.
std::shared_ptr<const Dataset> open_shards(Disk& disk, const std::string& path, const std::string& split,
                                           const ShardOptions& options);

// Whether `path` has archives of its own for the split.
bool has_shards_of(Disk& disk, const std::string& path, const std::string& split);

}  // namespace echelon::data
