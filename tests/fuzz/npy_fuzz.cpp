// Any bytes are either refused with BadInput or are arrays of which every number can be read: NPY, or NPZ if they begin
// like a ZIP archive.

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "data/formats/npy.h"
#include "data/formats/npz.h"

namespace {
void read_all(const echelon::data::Array& a) {
  std::vector<float> sample(static_cast<std::size_t>(a.sample.elements()));
  for (std::uint64_t i = 0; i < a.count; ++i) a.read_f32(a.place(i), a.sample.elements(), sample.data());
}
}  // namespace

int fuzz_npy(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  const auto source = data::memory_source("input", {bytes, bytes + size});
  try {
    if (size > 1 && data[0] == 'P')
      for (const auto& [name, array] : data::read_npz(source)) read_all(array);
    else
      read_all(data::read_npy(source));
  } catch (const BadInput&) {
  }
  return 0;
}
