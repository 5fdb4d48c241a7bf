#pragma once
// Data made up on the spot, for tests, benchmarks and first tries: any shape, any number of samples, no file. Sample i
// is a pure function of (seed, i); the seed here belongs to the data, not to the run. Everything can be learnt:
//   blobs   "features" f32 [shape]: one normal cloud for each class, around a random centre; `noise` is its deviation
//   images  "image" f32 [channels, height, width]: one random pattern for each class, with uniform noise
//   tokens  "tokens" and "targets" i32 [length]: a random walk over the vocabulary in which each token has one usual
//           successor, taken with probability 1 - noise
//   lists   "features" f32 [length, classes + 3]: a question and digits below `classes`, one of them or more, each a
//   row
//           with a single 1; the label answers it: the first digit, the last one, the greatest. Lists differ in length;
//           rows of zeros come before those that are shorter than `length`
// The split "test" has other samples of the same classes.

#include <memory>
#include <string>

#include "data/dataset.h"

namespace echelon::data {

struct SyntheticOptions {
  enum class Kind { blobs, images, tokens, lists } kind = Kind::blobs;
  std::uint64_t samples = 1000;
  Shape shape{16};            // of a sample; tokens: [length]
  std::int64_t classes = 10;  // tokens: the size of the vocabulary
  std::uint64_t seed = 1;
  double noise = 0.25;
};

std::shared_ptr<const Dataset> make_synthetic(const std::string& split, const SyntheticOptions& options);

}  // namespace echelon::data
