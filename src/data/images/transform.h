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
TransformPtr make_rotate(double most_degrees);  // about the middle, to either side; zeros come in at the corners
TransformPtr make_zoom(double most);            // by a factor between 1 - most and 1 + most
// Brightness, contrast and (of three channels) saturation, each times up to 1 - most .. 1 + most.
struct ColourChange {
  double brightness = 0.2, contrast = 0.2, saturation = 0.2;
};
TransformPtr make_colour(const ColourChange& most);
// With that probability a rectangle of zeros, `least` to `most` of the image's area (Zhong et al. 2017).
TransformPtr make_erase(double probability, double least, double most);
// (x - mean) / deviation, for each channel, or for all when one number is given.
TransformPtr make_normalise(std::vector<float> mean, std::vector<float> deviation);
// A second field with the content of the first: the clean target of a denoising autoencoder. Put before make_noise.
TransformPtr make_copy(const std::string& from, const std::string& to);

}  // namespace echelon::data
