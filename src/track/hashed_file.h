#pragma once
// Writing and reading whole files together with their SHA-256, in large pieces. Throws DiskError. One thread at a time.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "world/os/disk.h"

namespace echelon {

struct FileDigest {
  std::uint64_t bytes = 0;
  std::string sha256;
  bool operator==(const FileDigest&) const = default;
};

// A new file, hashed as it is written. Small pieces are gathered, so a model of many small tensors costs few calls.
class HashedWriter {
 public:
  HashedWriter(Disk& disk, const std::string& path);
  void append(std::span<const std::byte> bytes);
  void append(std::string_view text) { append(std::as_bytes(std::span(text))); }
  FileDigest finish();  // writes the rest and syncs; call once

 private:
  void flush();

  std::unique_ptr<File> file_;
  std::vector<std::byte> gathered_;
  Sha256 hash_;
  std::uint64_t bytes_ = 0;
};

FileDigest digest_of(Disk& disk, const std::string& path);

}  // namespace echelon
