#include "data/images/transform.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "data/images/in_place.h"
#include "data/normals.h"
#include "data/scratch.h"

namespace echelon::data {

namespace {

// to(y, x) = from(y + down, x + right), zero outside. `to` may be the same image as `from`: rows are then taken in the
// order in which none is overwritten before it was read.
void copy_window(const Image& from, const Image& to, std::int64_t down, std::int64_t right) {
  const std::int64_t x0 = std::clamp<std::int64_t>(-right, 0, to.width);
  const std::int64_t x1 = std::clamp<std::int64_t>(from.width - right, x0, to.width);
  for (std::int64_t c = 0; c < to.channels; ++c)
    for (std::int64_t i = 0; i < to.height; ++i) {
      const std::int64_t y = down >= 0 ? i : to.height - 1 - i, source = y + down;
      float* const row = to.row(c, y);
      if (source < 0 || source >= from.height) {
        std::fill_n(row, to.width, 0.0f);
        continue;
      }
      if (x1 > x0) std::memmove(row + x0, from.row(c, source) + x0 + right, static_cast<std::size_t>(x1 - x0) * 4);
      std::fill(row, row + x0, 0.0f);
      std::fill(row + x1, row + to.width, 0.0f);
    }
}

class CropTransform : public Transform {
 public:
  explicit CropTransform(const Crop& crop) : crop_(crop) {
    if (crop.height < 0 || crop.width < 0 || crop.pad < 0) bad_input("a crop's extents and padding are not negative");
  }
  std::vector<Field> fields(const std::vector<Field>& before) const override {
    auto after = before;
    Shape& s = after[image_field(before, "crop")].shape;
    const std::int64_t h = crop_.height ? crop_.height : s[1], w = crop_.width ? crop_.width : s[2];
    if (h > s[1] + 2 * crop_.pad || w > s[2] + 2 * crop_.pad)
      bad_input("a crop of {} x {} does not fit into an image of {} x {} with {} around it", h, w, s[1], s[2],
                crop_.pad);
    s[1] = h, s[2] = w;
    return after;
  }
  void apply(const std::vector<Field>& before, SampleRef in, SampleRef out, const Stream& random) const override {
    const Image from = image_at(before, in);
    Image to = image_at(before, out);
    if (crop_.height) to.height = crop_.height;
    if (crop_.width) to.width = crop_.width;
    const std::int64_t down = from.height + 2 * crop_.pad - to.height, right = from.width + 2 * crop_.pad - to.width;
    const std::int64_t y = crop_.centre ? down / 2 : random.below(static_cast<std::uint32_t>(down + 1), 0);
    const std::int64_t x = crop_.centre ? right / 2 : random.below(static_cast<std::uint32_t>(right + 1), 1);
    copy_window(from, to, y - crop_.pad, x - crop_.pad);
    if (in[0] == out[0]) return;
    const auto image = static_cast<std::size_t>(find_field(before, "image"));
    for (std::size_t f = 0; f < in.size(); ++f)
      if (f != image) std::memcpy(out[f], in[f], before[f].bytes());
  }
  bool random() const override { return !crop_.centre; }

 private:
  Crop crop_;
};

class Flip : public InPlace {
 public:
  explicit Flip(float probability) : InPlace("flip", true), probability_(probability) {
    if (!(probability >= 0 && probability <= 1)) bad_input("a probability lies between 0 and 1, not {}", probability);
  }
  void change(const Image& image, const Stream& random) const override {
    if (random.uniform(0) >= probability_) return;
    for (std::int64_t r = 0; r < image.channels * image.height; ++r)
      std::reverse(image.pixels + r * image.width, image.pixels + (r + 1) * image.width);
  }

 private:
  float probability_;
};

class Shift : public InPlace {
 public:
  explicit Shift(std::int64_t most) : InPlace("shift", true), most_(most) {
    if (most < 0 || most > 1 << 20) bad_input("a shift by up to {} pixels is not possible", most);
  }
  void change(const Image& image, const Stream& random) const override {
    const auto choices = static_cast<std::uint32_t>(2 * most_ + 1);
    copy_window(image, image, random.below(choices, 0) - most_, random.below(choices, 1) - most_);
  }

 private:
  std::int64_t most_;
};

class Cutout : public InPlace {
 public:
  explicit Cutout(std::int64_t extent) : InPlace("cutout", true), extent_(extent) {
    if (extent < 1) bad_input("a cut-out has an extent of at least 1, not {}", extent);
  }
  void change(const Image& image, const Stream& random) const override {
    const std::int64_t cy = random.below(static_cast<std::uint32_t>(image.height), 0);
    const std::int64_t cx = random.below(static_cast<std::uint32_t>(image.width), 1);
    const std::int64_t y0 = std::max<std::int64_t>(0, cy - extent_ / 2),
                       x0 = std::max<std::int64_t>(0, cx - extent_ / 2);
    const std::int64_t y1 = std::min(image.height, cy - extent_ / 2 + extent_);
    const std::int64_t x1 = std::min(image.width, cx - extent_ / 2 + extent_);
    for (std::int64_t c = 0; c < image.channels; ++c)
      for (std::int64_t y = y0; y < y1; ++y) std::fill(image.row(c, y) + x0, image.row(c, y) + x1, 0.0f);
  }

 private:
  std::int64_t extent_;
};

class Noise : public InPlace {
 public:
  explicit Noise(float deviation) : InPlace("noise", true), deviation_(deviation) {
    if (!(deviation >= 0) || !std::isfinite(deviation))
      bad_input("noise has a deviation of 0 or more, not {}", deviation);
  }
  void change(const Image& image, const Stream& random) const override {
    const auto n = static_cast<std::size_t>(image.channels * image.height * image.width);
    Scratch memory(n * sizeof(float));
    const std::span<float> noise(reinterpret_cast<float*>(memory.data()), n);
    fill_normals(random, noise);
    for (std::size_t i = 0; i < n; ++i) image.pixels[i] += deviation_ * noise[i];
  }

 private:
  float deviation_;
};

class Normalise : public InPlace {
 public:
  Normalise(std::vector<float> mean, std::vector<float> deviation)
      : InPlace("normalise", false), mean_(std::move(mean)), scale_(std::move(deviation)) {
    if (mean_.empty() || mean_.size() != scale_.size())
      bad_input("normalising needs as many means ({}) as deviations ({})", mean_.size(), scale_.size());
    for (auto& s : scale_) {
      if (!(s > 0) || !std::isfinite(s)) bad_input("normalising needs deviations above 0, not {}", s);
      s = 1.0f / s;
    }
  }
  void check(const Shape& shape) const override {
    if (mean_.size() != 1 && static_cast<std::int64_t>(mean_.size()) != shape[0])
      bad_input("{} means for an image of {} channels: give one for each channel, or one for all", mean_.size(),
                shape[0]);
  }
  void change(const Image& image, const Stream&) const override {
    const std::int64_t area = image.height * image.width;
    for (std::int64_t c = 0; c < image.channels; ++c) {
      const auto k = static_cast<std::size_t>(mean_.size() == 1 ? 0 : c);
      const float mean = mean_[k], scale = scale_[k];
      float* const p = image.pixels + c * area;
      for (std::int64_t i = 0; i < area; ++i) p[i] = (p[i] - mean) * scale;
    }
  }

 private:
  std::vector<float> mean_, scale_;
};

class Copy : public Transform {
 public:
  Copy(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}
  std::vector<Field> fields(const std::vector<Field>& before) const override {
    const int from = find_field(before, from_);
    if (from < 0)
      bad_input("there is no field '{}' to copy; a sample here begins with {}", from_, to_string(before[0]));
    if (find_field(before, to_) >= 0) bad_input("a field '{}' is there already", to_);
    auto after = before;
    after.insert(after.begin() + 1, before[static_cast<std::size_t>(from)]);  // what the loss compares with
    after[1].name = to_;
    return after;
  }
  void apply(const std::vector<Field>& before, SampleRef in, SampleRef out, const Stream&) const override {
    const auto from = static_cast<std::size_t>(find_field(before, from_));
    for (std::size_t f = 0; f < in.size(); ++f) std::memcpy(out[f == 0 ? 0 : f + 1], in[f], before[f].bytes());
    std::memcpy(out[1], in[from], before[from].bytes());
  }

 private:
  std::string from_, to_;
};

}  // namespace

TransformPtr make_crop(const Crop& crop) { return std::make_unique<CropTransform>(crop); }
TransformPtr make_flip(float probability) { return std::make_unique<Flip>(probability); }
TransformPtr make_shift(std::int64_t most) { return std::make_unique<Shift>(most); }
TransformPtr make_cutout(std::int64_t extent) { return std::make_unique<Cutout>(extent); }
TransformPtr make_noise(float deviation) { return std::make_unique<Noise>(deviation); }
TransformPtr make_normalise(std::vector<float> mean, std::vector<float> deviation) {
  return std::make_unique<Normalise>(std::move(mean), std::move(deviation));
}
TransformPtr make_copy(const std::string& from, const std::string& to) { return std::make_unique<Copy>(from, to); }

}  // namespace echelon::data
