#include "track/hashed_file.h"

namespace echelon {

namespace {
constexpr std::size_t piece = 1u << 20;
}

HashedWriter::HashedWriter(Disk& disk, const std::string& path) : file_(disk.create(path)) { gathered_.reserve(piece); }

void HashedWriter::append(std::span<const std::byte> bytes) {
  bytes_ += bytes.size();
  while (!bytes.empty()) {
    const std::size_t n = std::min(bytes.size(), piece - gathered_.size());
    if (gathered_.empty() && n == piece) {  // large tensors go straight from their memory
      hash_.update(bytes.first(n));
      file_->append(bytes.first(n));
    } else {
      gathered_.insert(gathered_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
      if (gathered_.size() == piece) flush();
    }
    bytes = bytes.subspan(n);
  }
}

void HashedWriter::flush() {
  hash_.update(gathered_);
  file_->append(gathered_);
  gathered_.clear();
}

FileDigest HashedWriter::finish() {
  if (!gathered_.empty()) flush();
  file_->sync();
  return {bytes_, hash_.hex()};
}

FileDigest digest_of(Disk& disk, const std::string& path) {
  const auto file = disk.open(path);
  std::vector<std::byte> buffer(piece);
  Sha256 hash;
  std::uint64_t bytes = 0;
  while (const std::size_t n = file->read_at(bytes, buffer)) {
    hash.update(std::span(buffer).first(n));
    bytes += n;
  }
  return {bytes, hash.hex()};
}

}  // namespace echelon
