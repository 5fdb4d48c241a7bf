// Any bytes are either refused with BadInput or unpack within the limit: the one that is given, and the one that a
// header inside declares (here, the first byte is it, in KiB).

#include <cstdint>

#include "base/error.h"
#include "data/files/inflate.h"

int fuzz_gzip(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  const auto source = data::memory_source("input", {bytes, bytes + size});
  constexpr std::size_t limit = 1 << 18;  // more than the 255 KiB that one byte declares
  try {
    invariant(data::gunzip(*source, limit).size() <= limit, "unpacked too much");
  } catch (const BadInput&) {
  }
  std::uint64_t declared = limit;
  const auto read = [&](const data::Source& beginning) {
    return declared = data::Reader(beginning).big(1, "a size") << 10;
  };
  try {
    invariant(data::gunzip(*source, limit, read).size() <= declared, "unpacked more than was declared");
  } catch (const BadInput&) {
  }
  return 0;
}
