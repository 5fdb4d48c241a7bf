// Any bytes are either refused with BadInput or unpack within the limit.

#include <cstdint>

#include "base/error.h"
#include "data/inflate.h"

int fuzz_gzip(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  constexpr std::size_t limit = 1 << 20;
  try {
    invariant(data::gunzip(*data::memory_source("input", {bytes, bytes + size}), limit).size() <= limit,
              "unpacked too much");
  } catch (const BadInput&) {
  }
  return 0;
}
