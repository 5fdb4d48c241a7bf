// Any bytes are either refused with BadInput or are members that lie within the archive.

#include <cstdint>

#include "base/error.h"
#include "data/formats/tar.h"

int fuzz_tar(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  const auto tar = data::memory_source("input", {bytes, bytes + size});
  try {
    data::read_tar(*tar, [&](const data::TarMember& m) {
      invariant(m.offset <= tar->size() && m.size <= tar->size() - m.offset, "a member reaches beyond its archive");
    });
  } catch (const BadInput&) {
  }
  return 0;
}
