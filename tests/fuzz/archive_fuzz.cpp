// Any bytes are either refused with BadInput or are a snapshot whose files have the sizes and hashes that it says.

#include <cstdint>

#include "base/error.h"
#include "base/sha256.h"
#include "registry/archive.h"

int fuzz_archive(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  try {
    const SnapshotFiles files = unpack_snapshot(bytes, nullptr, "fuzz");
    for (const SnapshotHeader::Entry& e : read_snapshot_header(bytes, "fuzz").files)
      invariant(sha256_hex(files.at(e.name)) == e.sha256, "another file than it says");
  } catch (const BadInput&) {
  }
  return 0;
}
