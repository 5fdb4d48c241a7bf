#pragma once
// What several tests of the data room need: stored files, values of samples, and a data set whose samples can be told.

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/random.h"
#include "data/decorators.h"
#include "data/files/source.h"
#include "tests/support/says.h"
#include "tests/support/source_path.h"
#include "tests/support/temp_dir.h"

namespace echelon::data::test {

using echelon::test::complaint_of;
using echelon::test::says;
using echelon::test::TempDir;

inline std::string fixture_path(const std::string& name) { return source_path("tests/data/fixtures/" + name); }

inline std::vector<std::byte> bytes_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  std::vector<std::byte> bytes;
  for (std::istreambuf_iterator<char> it(in), end; it != end; ++it) bytes.push_back(static_cast<std::byte>(*it));
  return bytes;
}

inline SourcePtr fixture(const std::string& name) { return memory_source(name, bytes_of_file(fixture_path(name))); }

inline void write_bytes(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

template <typename T>
std::vector<T> values(const Dataset& dataset, std::uint64_t index, std::size_t field, SampleContext context = {}) {
  Sample sample(dataset.fields());
  dataset.get(index, context, sample.ref());
  const auto v = sample.field<T>(field);
  return {v.begin(), v.end()};
}

inline std::int32_t label(const Dataset& dataset, std::uint64_t index) {
  return values<std::int32_t>(dataset, index, 1).at(0);
}

// Sample i is the number i: "features" f32 [width] = i, i + 0.5, ...; "label" = i % 10. Optionally as an image, and
// optionally different in every epoch.
class Numbers : public Dataset {
 public:
  explicit Numbers(std::uint64_t size, Shape shape = Shape{2}) : Dataset(make_info(size, shape)) {}
  void get(std::uint64_t index, const SampleContext&, SampleRef out) const override {
    auto* const x = reinterpret_cast<float*>(out[0]);
    for (std::int64_t i = 0; i < fields()[0].shape.elements(); ++i)
      x[i] = static_cast<float>(index) + 0.5f * static_cast<float>(i);
    *reinterpret_cast<std::int32_t*>(out[1]) = static_cast<std::int32_t>(index % 10);
  }

 private:
  static DatasetInfo make_info(std::uint64_t size, const Shape& shape) {
    DatasetInfo info;
    info.size = size;
    info.fields = {{shape.rank() == 3 ? "image" : "features", DType::f32, shape}, {"label", DType::i32, Shape{}}};
    info.classes = 10;
    info.fingerprint = "numbers " + std::to_string(size);
    return info;
  }
};

inline DatasetPtr numbers(std::uint64_t size, Shape shape = Shape{2}) { return std::make_shared<Numbers>(size, shape); }

}  // namespace echelon::data::test
