// Any bytes are either refused with BadInput or are a table of which every sample can be read.

#include <cstdint>

#include "base/error.h"
#include "data/formats/csv.h"

int fuzz_csv(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  try {
    const auto d = data::read_csv(data::memory_source("input", {bytes, bytes + size}), {});
    data::Sample sample(d->fields());
    for (std::uint64_t i = 0; i < d->size(); ++i) d->get(i, {}, sample.ref());
  } catch (const BadInput&) {
  }
  return 0;
}
