#pragma once
// Changes to samples: augmentation and normalisation, applied by the decorator `mapped`. A transform draws its random
// numbers from the sample's own stream, keyed by (seed, epoch, sample index, place in the chain), so that a sample is
// changed the same way on every machine, in every order, and after every restart.
//
// Images are f32 [channels, height, width] in the field "image". Transforms are immutable and thread-safe.

#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "data/decorators.h"

namespace echelon::data {

class Transform {
 public:
  virtual ~Transform() = default;
  // The fields after it, given those before; BadInput if it does not fit them. Default: unchanged.
  virtual std::vector<Field> fields(const std::vector<Field>& before) const { return before; }
  // `in` holds the sample before, `out` receives the sample after. They are the same memory if (and only if) the fields
  // are the same before and after. `fields` describes `in`.
  virtual void apply(const std::vector<Field>& fields, SampleRef in, SampleRef out, const Stream& random) const = 0;
  virtual bool random() const { return false; }
};

using TransformPtr = std::unique_ptr<const Transform>;

DatasetPtr mapped(DatasetPtr inner, std::vector<TransformPtr> chain);

// A random window of height x width out of the image with `pad` zeros around it; 0 keeps the image's own extent.
// With `centre` the window in the middle instead: the calm twin for evaluation.
struct Crop {
  std::int64_t height = 0, width = 0, pad = 0;
  bool centre = false;
};
TransformPtr make_crop(const Crop& crop);
TransformPtr make_flip(float probability);      // left and right exchanged
TransformPtr make_shift(std::int64_t most);     // moved by up to `most` pixels in each direction, zeros move in
TransformPtr make_cutout(std::int64_t extent);  // a square of zeros somewhere (DeVries & Taylor 2017)
TransformPtr make_noise(float deviation);       // normal noise added to every pixel
// (x - mean) / deviation, for each channel, or for all when one number is given.
TransformPtr make_normalise(std::vector<float> mean, std::vector<float> deviation);
// A second field with the content of the first: the clean target of a denoising autoencoder. Put before make_noise.
TransformPtr make_copy(const std::string& from, const std::string& to);

}  // namespace echelon::data
