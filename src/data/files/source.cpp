#include "data/files/source.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "data/files/fingerprint.h"
#include "data/files/hash_cache.h"
#include "data/files/inflate.h"
#include "tensor/buffer.h"
#include "world/os/host.h"
#include "world/os/nearest_file.h"

namespace echelon::data {

namespace {

class MemorySource : public Source {
 public:
  MemorySource(std::string name, std::vector<std::byte> bytes)
      : Source(std::move(name), bytes.size()), bytes_(std::move(bytes)) {
    static constexpr std::byte nothing{};
    set_memory(bytes_.empty() ? &nothing : bytes_.data());
  }

 private:
  void do_read(std::uint64_t offset, std::span<std::byte> into) const override {
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
  }
  std::vector<std::byte> bytes_;
};

// A whole file. A large one lies on huge pages: with small ones, most of the time of reading it would go into them.
class LoadedSource : public Source {
 public:
  LoadedSource(std::string name, std::uint64_t size, File& file) : Source(std::move(name), size), bytes_(size + 1) {
    if (file.read_at(0, {bytes_.data(), size}) != size)
      bad_input("{}: the file became shorter while it was read", this->name());
    set_memory(bytes_.data());
  }

 private:
  void do_read(std::uint64_t offset, std::span<std::byte> into) const override {
    std::copy_n(bytes_.data() + offset, into.size(), into.begin());
  }
  Buffer bytes_;
};

class FileSource : public Source {
 public:
  FileSource(Disk& disk, std::string name, std::uint64_t size, std::unique_ptr<File> file)
      : Source(std::move(name), size), disk_(disk), file_(std::move(file)) {}
  std::string content_hash() const override {
    return cached_hash(disk_, usual_hash_cache(), {name()}, [this] { return Source::content_hash(); });
  }

 private:
  void do_read(std::uint64_t offset, std::span<std::byte> into) const override {
    const std::size_t got = file_->read_at(offset, into);
    if (got < into.size())
      bad_input("{}: the file became shorter while it was read: it had {} bytes, now {}", name(), size(), offset + got);
  }
  Disk& disk_;
  std::unique_ptr<File> file_;
};

class PartSource : public Source {
 public:
  PartSource(SourcePtr whole, std::uint64_t offset, std::uint64_t size, std::string name)
      : Source(std::move(name), size), whole_(std::move(whole)), offset_(offset) {
    set_memory(whole_->at(offset, size));
  }

 private:
  void do_read(std::uint64_t offset, std::span<std::byte> into) const override { whole_->read(offset_ + offset, into); }
  SourcePtr whole_;
  std::uint64_t offset_;
};

}  // namespace

void Source::check(std::uint64_t offset, std::uint64_t count) const {
  if (offset > size_ || count > size_ - offset)
    bad_input("{}: at byte {}: expected {} more bytes, but the file ends at {} (truncated?)", name_, offset, count,
              size_);
}

void Source::read(std::uint64_t offset, std::span<std::byte> into) const {
  check(offset, into.size());
  if (memory_)
    std::memcpy(into.data(), memory_ + offset, into.size());
  else
    do_read(offset, into);
}

const std::byte* Source::at(std::uint64_t offset, std::uint64_t count) const {
  check(offset, count);
  return memory_ ? memory_ + offset : nullptr;
}

SourcePtr memory_source(std::string name, std::vector<std::byte> bytes) {
  return std::make_shared<MemorySource>(std::move(name), std::move(bytes));
}

SourcePtr part_of(SourcePtr whole, std::uint64_t offset, std::uint64_t size, std::string name) {
  return std::make_shared<PartSource>(std::move(whole), offset, size, std::move(name));
}

SourcePtr open_source(Disk& disk, const std::string& path, std::uint64_t memory_limit,
                      const std::function<std::uint64_t(const Source& beginning)>& declared) try {
  auto file = disk.open(path);
  const std::uint64_t size = file->size();
  std::array<std::byte, 2> magic{};
  const bool gzipped = file->read_at(0, magic) == 2 && magic[0] == std::byte{0x1f} && magic[1] == std::byte{0x8b};
  if (size > memory_limit && !gzipped) return std::make_shared<FileSource>(disk, path, size, std::move(file));
  if (size > memory_limit)
    bad_input("{}: {} MiB gzipped are too much to unpack into memory: unpack it on disk (gunzip)", path, size >> 20);
  const auto source = std::make_shared<LoadedSource>(path, size, *file);
  if (!gzipped) return source;
  std::uint64_t most = std::min<std::uint64_t>(8 * memory_limit, usable_memory_bytes() / 4);
  if (!declared) most = std::min(most, plausible_size(size));
  return memory_source(path, gunzip(*source, most, declared));
} catch (const DiskError& e) {
  if (e.error_number() == ENOENT) bad_input("{}: there is no such file{}", path, did_you_mean_file(disk, path));
  if (e.error_number() == EISDIR) bad_input("{}: this is a directory, but a file was expected", path);
  if (e.error_number() == EACCES) bad_input("{}: permission to read it was denied", path);
  throw;
}

std::string Source::content_hash() const {
  Sha256 hash;
  if (memory_) {
    hash.update({memory_, size_});
    return hash.hex();
  }
  std::vector<std::byte> piece(1u << 20);
  for (std::uint64_t at = 0; at < size_; at += piece.size()) {
    const auto part = std::span(piece).first(std::min<std::uint64_t>(piece.size(), size_ - at));
    do_read(at, part);
    hash.update(part);
  }
  return hash.hex();
}

std::string fingerprint_of(const Source& source) {
  return Fingerprint().add(source.size()).add(source.content_hash()).hex();
}

void corrupt(const Source& source, std::uint64_t offset, std::string_view expected, std::string_view found) {
  bad_input("{}: at byte {}: expected {}, found {}", source.name(), offset, expected, found);
}

void Reader::need(std::uint64_t bytes, std::string_view what) const {
  if (bytes > left())
    corrupt(source_, offset_, what, fmt::format("the end of the file at {} (truncated?)", source_.size()));
}

std::uint64_t Reader::big(int bytes, std::string_view what) {
  need(static_cast<std::uint64_t>(bytes), what);
  std::array<std::byte, 8> raw{};
  source_.read(offset_, std::span(raw).first(static_cast<std::size_t>(bytes)));
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value = value << 8 | static_cast<std::uint64_t>(raw[static_cast<std::size_t>(i)]);
  offset_ += static_cast<std::uint64_t>(bytes);
  return value;
}

std::uint64_t Reader::little(int bytes, std::string_view what) {
  std::uint64_t value = big(bytes, what);
  return __builtin_bswap64(value) >> (64 - 8 * bytes);
}

std::string Reader::text(std::uint64_t bytes, std::string_view what) {
  need(bytes, what);
  std::string value(bytes, '\0');
  source_.read(offset_, std::as_writable_bytes(std::span(value)));
  offset_ += bytes;
  return value;
}

void Reader::skip(std::uint64_t bytes, std::string_view what) {
  need(bytes, what);
  offset_ += bytes;
}

std::uint64_t checked_product(std::uint64_t a, std::uint64_t b, const Source& source, std::uint64_t offset) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product) || product > 1ull << 62)
    corrupt(source, offset, "a size that a file can have", fmt::format("{} x {}", a, b));
  return product;
}

}  // namespace echelon::data
