// Any bytes are either refused with BadInput or are an array of which every number can be read, and which as labels has
// a plausible number of classes.

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "data/formats/idx.h"

int fuzz_idx(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  try {
    const data::Array a = data::read_idx(data::memory_source("input", {bytes, bytes + size}));
    std::vector<float> sample(static_cast<std::size_t>(a.sample.elements()));
    for (std::uint64_t i = 0; i < a.count; ++i) a.read_f32(a.place(i), a.sample.elements(), sample.data());
    const data::DatasetInfo info = data::array_dataset(a, a, {})->info();
    const auto labels = static_cast<std::int64_t>(a.count) * a.sample.elements();
    if (a.sample.rank() == 0) invariant(info.classes <= 2 * labels + 16, "more classes than labels could name");
  } catch (const BadInput&) {
  }
  return 0;
}
