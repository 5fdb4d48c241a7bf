// Augmentation that resamples, recolours or erases parts of images. No function of the C library that may differ from
// machine to machine is called: a sample has the same bits everywhere.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "data/images/in_place.h"
#include "data/scratch.h"

namespace echelon::data {

namespace {

constexpr double half_turn = 3.14159265358979323846;

// Taylor's series, exact to about 1e-9 for angles up to half a turn.
double sine(double x) {
  double term = x, sum = x;
  for (int n = 1; n < 12; ++n) sum += term *= -x * x / ((2 * n) * (2 * n + 1));
  return sum;
}
double cosine(double x) {
  double term = 1, sum = 1;
  for (int n = 1; n < 12; ++n) sum += term *= -x * x / ((2 * n - 1) * (2 * n));
  return sum;
}

// How far a uniform number in [0, 1) is between -most and most.
double spread(float uniform, double most) { return (2.0 * static_cast<double>(uniform) - 1) * most; }

// Where a pixel of the new image comes from, seen from the middle: old = m new.
struct Turn {
  double m00, m01, m10, m11;
};

// Bilinear, zero outside.
void resample(const Image& image, const Turn& turn) {
  const std::int64_t h = image.height, w = image.width, area = h * w;
  const auto n = static_cast<std::size_t>(image.channels * area);
  Scratch memory(n * sizeof(float));
  float* const old = reinterpret_cast<float*>(memory.data());
  std::memcpy(old, image.pixels, n * sizeof(float));
  const double middle_y = 0.5 * static_cast<double>(h - 1), middle_x = 0.5 * static_cast<double>(w - 1);
  for (std::int64_t y = 0; y < h; ++y)
    for (std::int64_t x = 0; x < w; ++x) {
      const double dy = static_cast<double>(y) - middle_y, dx = static_cast<double>(x) - middle_x;
      const double from_y = turn.m00 * dy + turn.m01 * dx + middle_y, from_x = turn.m10 * dy + turn.m11 * dx + middle_x;
      const double top = std::floor(from_y), left = std::floor(from_x);
      const auto below = static_cast<float>(from_y - top), right = static_cast<float>(from_x - left);
      const auto y0 = static_cast<std::int64_t>(top), x0 = static_cast<std::int64_t>(left);
      for (std::int64_t c = 0; c < image.channels; ++c) {
        const auto at = [&](std::int64_t yy, std::int64_t xx) {
          return yy < 0 || yy >= h || xx < 0 || xx >= w ? 0.0f : old[c * area + yy * w + xx];
        };
        const float upper = at(y0, x0) + right * (at(y0, x0 + 1) - at(y0, x0));
        const float lower = at(y0 + 1, x0) + right * (at(y0 + 1, x0 + 1) - at(y0 + 1, x0));
        image.row(c, y)[x] = upper + below * (lower - upper);
      }
    }
}

class Rotate : public InPlace {
 public:
  explicit Rotate(double most) : InPlace("rotate", true), most_(most) {
    if (!(most >= 0 && most <= 180)) bad_input("a rotation lies between 0 and 180 degrees, not {}", most);
  }
  void change(const Image& image, const Stream& random) const override {
    const double angle = spread(random.uniform(0), most_) / 180 * half_turn;
    const double c = cosine(angle), s = sine(angle);
    resample(image, {c, s, -s, c});
  }

 private:
  double most_;
};

class Zoom : public InPlace {
 public:
  explicit Zoom(double most) : InPlace("zoom", true), most_(most) {
    if (!(most >= 0 && most < 1)) bad_input("a zoom lies between 0 and 1, not {}", most);
  }
  void change(const Image& image, const Stream& random) const override {
    const double factor = 1 / (1 + spread(random.uniform(0), most_));
    resample(image, {factor, 0, 0, factor});
  }

 private:
  double most_;
};

class Colour : public InPlace {
 public:
  explicit Colour(const ColourChange& most) : InPlace("colour", true), most_(most) {
    for (const double m : {most.brightness, most.contrast, most.saturation})
      if (!(m >= 0 && m <= 1)) bad_input("a change of colour lies between 0 and 1, not {}", m);
  }
  void change(const Image& image, const Stream& random) const override {
    const std::int64_t area = image.height * image.width, n = image.channels * area;
    const auto bright = static_cast<float>(1 + spread(random.uniform(0), most_.brightness));
    const auto contrast = static_cast<float>(1 + spread(random.uniform(1), most_.contrast));
    const auto saturation = static_cast<float>(1 + spread(random.uniform(2), most_.saturation));
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += image.pixels[i] *= bright;
    const auto mean = static_cast<float>(sum / static_cast<double>(n));
    for (std::int64_t i = 0; i < n; ++i) image.pixels[i] = mean + contrast * (image.pixels[i] - mean);
    if (image.channels != 3) return;
    for (std::int64_t i = 0; i < area; ++i) {
      float *r = image.pixels + i, *g = r + area, *b = g + area;
      const float grey = 0.299f * *r + 0.587f * *g + 0.114f * *b;
      for (float* p : {r, g, b}) *p = grey + saturation * (*p - grey);
    }
  }

 private:
  ColourChange most_;
};

class Erase : public InPlace {
 public:
  Erase(double probability, double least, double most)
      : InPlace("erase", true), probability_(probability), least_(least), most_(most) {
    if (!(probability >= 0 && probability <= 1)) bad_input("a probability lies between 0 and 1, not {}", probability);
    if (!(least > 0 && least <= most && most <= 1))
      bad_input("what is erased is a share between 0 and 1, the least before the most, not {} and {}", least, most);
  }
  void change(const Image& image, const Stream& random) const override {
    if (static_cast<double>(random.uniform(0)) >= probability_) return;
    const double area = (least_ + (most_ - least_) * static_cast<double>(random.uniform(1))) *
                        static_cast<double>(image.height * image.width);
    double ratio = 0.3 + 0.7 * static_cast<double>(random.uniform(2));
    if (random.below(2, 3) == 1) ratio = 1 / ratio;
    const auto extent = [](double side, std::int64_t most) {
      return std::clamp<std::int64_t>(static_cast<std::int64_t>(side + 0.5), 1, most);
    };
    const std::int64_t h = extent(std::sqrt(area * ratio), image.height);
    const std::int64_t w = extent(std::sqrt(area / ratio), image.width);
    const std::int64_t y0 = random.below(static_cast<std::uint32_t>(image.height - h + 1), 4);
    const std::int64_t x0 = random.below(static_cast<std::uint32_t>(image.width - w + 1), 5);
    for (std::int64_t c = 0; c < image.channels; ++c)
      for (std::int64_t y = y0; y < y0 + h; ++y) std::fill_n(image.row(c, y) + x0, w, 0.0f);
  }

 private:
  double probability_, least_, most_;
};

}  // namespace

TransformPtr make_rotate(double most_degrees) { return std::make_unique<Rotate>(most_degrees); }
TransformPtr make_zoom(double most) { return std::make_unique<Zoom>(most); }
TransformPtr make_colour(const ColourChange& most) { return std::make_unique<Colour>(most); }
TransformPtr make_erase(double probability, double least, double most) {
  return std::make_unique<Erase>(probability, least, most);
}

}  // namespace echelon::data
