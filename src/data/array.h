#pragma once
// Numbers lying somewhere in a source, all of one type, sample after sample at a fixed distance: what IDX, NPY, CIFAR
// and parsed tables have in common. And the data set made of two of them, inputs and labels.

#include <optional>

#include "data/dataset.h"
#include "data/files/source.h"

namespace echelon::data {

enum class Element : std::uint8_t { u8, i8, u16, i16, u32, i32, u64, i64, f32, f64 };
std::size_t size_of(Element element);
bool is_float(Element element);
std::string_view name_of(Element element);

struct Array {
  SourcePtr source;
  Element element = Element::u8;
  bool big_endian = false;
  std::uint64_t count = 0;   // samples
  Shape sample;              // the extents of one
  std::uint64_t offset = 0;  // of the first sample in the source
  std::uint64_t stride = 0;  // from one sample to the next, in bytes

  // `n` numbers from byte `at` of the source on. Integers that do not fit into 32 bits are a BadInput.
  void read_f32(std::uint64_t at, std::int64_t n, float* out, float scale = 1) const;
  void read_i32(std::uint64_t at, std::int64_t n, std::int32_t* out) const;
  std::uint64_t place(std::uint64_t index) const { return offset + index * stride; }
};

// A dense array of `extents` (the first counts the samples) at `offset`. BadInput if the source does not hold exactly
// that: products are checked, and nothing is allocated.
Array dense_array(SourcePtr source, Element element, bool big_endian, const std::vector<std::uint64_t>& extents,
                  std::uint64_t offset);

// The bytes of a file that consists of a header of `offset` bytes and such an array; BadInput if they cannot be
// counted.
std::uint64_t declared_bytes(const Source& source, Element element, const std::vector<std::uint64_t>& extents,
                             std::uint64_t offset);

// How arrays become samples.
struct ArrayOptions {
  enum class Input { automatic, image, features, tokens };
  Input input = Input::automatic;  // automatic: image for u8 or three dimensions, else features
  bool channels_last = false;      // [height, width, channels] is turned into [channels, height, width]
  std::optional<float> scale;      // default: 1/255 for u8, else 1
  std::int64_t classes = 0;        // 0: as many as the largest label says
  std::vector<std::string> class_names;
  bool fingerprint = true;  // else it stays empty, and the file is not read for it
};

// The names of the classes, one a line, in class order; none if there is no such file.
std::vector<std::string> read_class_names(Disk& disk, const std::string& path);

// Inputs, and labels if `y` is given: whole-number labels of rank 0 become the field "label", of a higher rank
// "targets"; others become "target" f32. BadInput if the counts differ or a label is out of range.
std::shared_ptr<const Dataset> array_dataset(Array x, std::optional<Array> y, const ArrayOptions& options);

}  // namespace echelon::data
