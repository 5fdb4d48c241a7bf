#pragma once
// Bytes from outside, with a name for messages. A parser reads them through a `Source` and never past its end: whatever
// does not fit is a BadInput that names the file, the offset, what was expected and what was found. Small sources lie
// in memory, large ones are read from the disk piece by piece. Immutable and thread-safe.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "world/os/disk.h"

namespace echelon::data {

class Source {
 public:
  Source(std::string name, std::uint64_t size) : name_(std::move(name)), size_(size) {}
  virtual ~Source() = default;
  const std::string& name() const { return name_; }
  std::uint64_t size() const { return size_; }
  // All of `into`, from `offset` on; BadInput saying that the file is too short otherwise.
  void read(std::uint64_t offset, std::span<std::byte> into) const;
  // The same bytes without copying them, or null if the source is not in memory.
  const std::byte* at(std::uint64_t offset, std::uint64_t count) const;
  bool in_memory() const { return memory_ != nullptr; }
  virtual std::string content_hash() const;  // SHA-256 of all bytes

 protected:
  void set_memory(const std::byte* memory) { memory_ = memory; }

 private:
  virtual void do_read(std::uint64_t offset, std::span<std::byte> into) const = 0;
  void check(std::uint64_t offset, std::uint64_t count) const;

  std::string name_;
  std::uint64_t size_;
  const std::byte* memory_ = nullptr;
};

using SourcePtr = std::shared_ptr<const Source>;

// Sources up to this size are read into memory at once, and gzipped ones may unpack to eight times as much.
constexpr std::uint64_t default_memory_limit = 1ull << 30;

SourcePtr memory_source(std::string name, std::vector<std::byte> bytes);
// A part of another source, under a name of its own. BadInput if it reaches beyond the whole.
SourcePtr part_of(SourcePtr whole, std::uint64_t offset, std::uint64_t size, std::string name);
// A file, unpacked if its content is gzipped. BadInput if it is not there or is a directory.
// What is gzipped unpacks to as much as its header declares (`declared`: data/files/inflate.h), else to as much as is
// plausible for its size; and never to more than eight limits or a quarter of the memory there is.
SourcePtr open_source(Disk& disk, const std::string& path, std::uint64_t memory_limit = default_memory_limit,
                      const std::function<std::uint64_t(const Source& beginning)>& declared = {});

// A hash of the whole content, which for large files is kept (data/files/hash_cache.h).
std::string fingerprint_of(const Source& source);

// "data/train.idx: at byte 4: expected a count of at most 10, found 11"
[[noreturn]] void corrupt(const Source& source, std::uint64_t offset, std::string_view expected,
                          std::string_view found);

// Reads numbers one after the other.
class Reader {
 public:
  explicit Reader(const Source& source, std::uint64_t offset = 0) : source_(source), offset_(offset) {}
  std::uint64_t offset() const { return offset_; }
  std::uint64_t left() const { return offset_ < source_.size() ? source_.size() - offset_ : 0; }
  const Source& source() const { return source_; }
  std::uint64_t big(int bytes, std::string_view what);     // big-endian, 1 to 8 bytes
  std::uint64_t little(int bytes, std::string_view what);  // little-endian
  std::string text(std::uint64_t bytes, std::string_view what);
  void skip(std::uint64_t bytes, std::string_view what);

 private:
  void need(std::uint64_t bytes, std::string_view what) const;
  const Source& source_;
  std::uint64_t offset_;
};

// a * b, or BadInput: sizes that do not fit into 64 bits are nobody's honest sizes.
std::uint64_t checked_product(std::uint64_t a, std::uint64_t b, const Source& source, std::uint64_t offset);

}  // namespace echelon::data
