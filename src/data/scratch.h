#pragma once
// Temporary memory of the calling thread, for the hot path: leased for a scope, handed back to a small per-thread pool,
// so that a loop that does the same again allocates nothing. 64-byte aligned, content undefined. Leases nest.

#include <cstddef>
#include <span>

#include "tensor/buffer.h"

namespace echelon::data {

class Scratch {
 public:
  explicit Scratch(std::size_t bytes = 0);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  void resize(std::size_t bytes);  // content undefined afterwards
  std::byte* data() { return buffer_.data(); }
  std::span<std::byte> bytes() { return {buffer_.data(), bytes_}; }

 private:
  Buffer buffer_;
  std::size_t bytes_;
};

}  // namespace echelon::data
