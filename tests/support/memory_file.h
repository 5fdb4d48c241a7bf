#pragma once
// A file that is nothing but bytes in memory: for readers of outside bytes, in tests and under the fuzzer.

#include <algorithm>
#include <cstring>
#include <vector>

#include "world/os/disk.h"

namespace echelon::test {

class MemoryFile : public File {
 public:
  explicit MemoryFile(std::span<const std::byte> bytes) : bytes_(bytes.begin(), bytes.end()) {}
  explicit MemoryFile(std::string_view text) : MemoryFile(std::as_bytes(std::span(text))) {}

  std::uint64_t size() override { return bytes_.size(); }
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> into) override {
    if (offset >= bytes_.size()) return 0;
    const std::size_t n = std::min<std::uint64_t>(into.size(), bytes_.size() - offset);
    if (n > 0) std::memcpy(into.data(), bytes_.data() + offset, n);
    return n;
  }
  void append(std::span<const std::byte> bytes) override { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void sync() override {}

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace echelon::test
