#pragma once
// What the transforms of images share: the image of a sample, and transforms that leave the fields as they are and work
// in place on it. Private to the transforms' own files.

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "data/images/transform.h"

namespace echelon::data {

struct Image {
  float* pixels;
  std::int64_t channels, height, width;
  float* row(std::int64_t c, std::int64_t y) const { return pixels + (c * height + y) * width; }
};

inline std::size_t image_field(const std::vector<Field>& fields, const char* transform) {
  const int i = find_field(fields, "image");
  if (i < 0 || fields[static_cast<std::size_t>(i)].shape.rank() != 3)
    bad_input("'{}' changes images, but a sample here is {}", transform, to_string(fields.front()));
  return static_cast<std::size_t>(i);
}

inline Image image_at(const std::vector<Field>& fields, SampleRef sample) {
  const auto i = static_cast<std::size_t>(find_field(fields, "image"));
  const Shape& s = fields[i].shape;
  return {reinterpret_cast<float*>(sample[i]), s[0], s[1], s[2]};
}

class InPlace : public Transform {
 public:
  InPlace(const char* name, bool random) : name_(name), random_(random) {}
  std::vector<Field> fields(const std::vector<Field>& before) const override {
    check(before[image_field(before, name_)].shape);
    return before;
  }
  void apply(const std::vector<Field>& fields, SampleRef, SampleRef out, const Stream& random) const override {
    change(image_at(fields, out), random);
  }
  bool random() const override { return random_; }

 private:
  virtual void check(const Shape&) const {}
  virtual void change(const Image& image, const Stream& random) const = 0;
  const char* name_;
  bool random_;
};

}  // namespace echelon::data
