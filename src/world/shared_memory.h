#pragma once
// Memory that all ranks see, and barriers in it. A region is zero-filled when it is first asked for. It is freed with
// the last rank, however that ends: nothing has a name in the file system.
//
// Thread-safe. Every rank asks for the same names and sizes; a different size under a known name is a Mismatch.

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace echelon {

// All parties arrive, then all go on. Spins briefly, then blocks.
class SharedBarrier {
 public:
  virtual ~SharedBarrier() = default;
  // True when all have arrived; false at the deadline: this party counts as arrived, so call it again to go on waiting.
  // Throws PeerLost.
  virtual bool wait(double deadline) = 0;
};

class SharedMemory {
 public:
  virtual ~SharedMemory() = default;
  // The same bytes on every rank (not always at the same address), aligned to a page.
  virtual std::span<std::byte> get(std::string_view name, std::size_t bytes) = 0;
  virtual bool contains(std::span<const std::byte> bytes) const = 0;  // whether other ranks can see these bytes
  // The barrier of that name among `parties` waiters, of which this is number `index`.
  virtual std::unique_ptr<SharedBarrier> barrier(std::string_view name, int index, int parties) = 0;
};

}  // namespace echelon
