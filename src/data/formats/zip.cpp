#include "data/formats/zip.h"

#include <algorithm>

#include "base/error.h"
#include "data/files/inflate.h"
#include "world/os/host.h"

namespace echelon::data {

namespace {

constexpr std::uint64_t end_signature = 0x06054b50, end64_locator_signature = 0x07064b50, end64_signature = 0x06064b50;
constexpr std::uint64_t entry_signature = 0x02014b50, local_signature = 0x04034b50;
constexpr std::uint64_t end_size = 22, longest_comment = 65535;

struct Directory {
  std::uint64_t offset = 0, bytes = 0, entries = 0;
};

// The end record is the last thing in the file, but for a comment of unknown length: look for it from behind.
std::uint64_t find_end(const Source& zip) {
  if (zip.size() < end_size) corrupt(zip, 0, "a ZIP archive", fmt::format("{} bytes", zip.size()));
  const std::uint64_t window = std::min(zip.size(), end_size + longest_comment), start = zip.size() - window;
  const std::string tail = Reader(zip, start).text(window, "the end of the archive");
  for (std::size_t at = tail.size() - end_size + 1; at-- > 0;) {
    if (tail.compare(at, 4, "PK\5\6") != 0) continue;
    const auto comment = static_cast<unsigned char>(tail[at + 20]) + 256u * static_cast<unsigned char>(tail[at + 21]);
    if (at + end_size + comment == tail.size()) return start + at;
  }
  corrupt(zip, zip.size(), "the end record of a ZIP archive", "none (truncated, or not a ZIP file?)");
}

Directory find_directory(const Source& zip) {
  const std::uint64_t end = find_end(zip);
  Reader r(zip, end + 4);
  const std::uint64_t disk = r.little(2, "a disk number"), first_disk = r.little(2, "a disk number");
  r.skip(2, "a count");
  Directory d;
  d.entries = r.little(2, "a count");
  d.bytes = r.little(4, "a size");
  d.offset = r.little(4, "an offset");
  const bool large = d.entries == 0xFFFF || d.bytes == 0xFFFFFFFF || d.offset == 0xFFFFFFFF;
  if (large && end >= 20) {
    Reader locator(zip, end - 20);
    if (locator.little(4, "a locator") == end64_locator_signature) {
      locator.skip(4, "a disk number");
      Reader end64(zip, 0);
      const std::uint64_t at = locator.little(8, "an offset");
      end64.skip(at, "the ZIP64 end record");
      if (end64.little(4, "the ZIP64 end record") != end64_signature)
        corrupt(zip, at, "the ZIP64 end record", "something else");
      end64.skip(8 + 2 + 2 + 4 + 4 + 8, "the ZIP64 end record");
      d.entries = end64.little(8, "a count");
      d.bytes = end64.little(8, "a size");
      d.offset = end64.little(8, "an offset");
    }
  } else if (disk != 0 || first_disk != 0) {
    corrupt(zip, end, "an archive in one part", "one in several");
  }
  if (d.offset > end || d.bytes > end - d.offset)
    corrupt(zip, end, fmt::format("a directory before byte {}", end), fmt::format("{} bytes at {}", d.bytes, d.offset));
  if (d.entries > d.bytes / 46)
    corrupt(zip, end, fmt::format("at most {} entries", d.bytes / 46), fmt::format("{}", d.entries));
  return d;
}

// The 64-bit values that replace those which do not fit: in this order, each only if its 32-bit field says so.
void read_zip64_extra(const Source& zip, std::uint64_t at, std::uint64_t length, ZipEntry& e) {
  Reader r(zip, at);
  while (r.offset() + 4 <= at + length) {
    const std::uint64_t id = r.little(2, "an extra field"), size = r.little(2, "its size");
    const std::uint64_t next = r.offset() + size;
    if (next > at + length) corrupt(zip, r.offset(), "an extra field within its entry", fmt::format("{} bytes", size));
    if (id == 1)
      for (std::uint64_t* value : {&e.unpacked, &e.packed, &e.header})
        if (*value == 0xFFFFFFFF && r.offset() + 8 <= next) *value = r.little(8, "a 64-bit size");
    r.skip(next - r.offset(), "an extra field");
  }
}

}  // namespace

std::vector<ZipEntry> read_zip_directory(const Source& zip) {
  const Directory directory = find_directory(zip);
  std::vector<ZipEntry> entries;
  Reader r(zip, directory.offset);
  const std::uint64_t limit = directory.offset + directory.bytes;
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    const std::uint64_t at = r.offset();
    if (r.little(4, "a directory entry") != entry_signature) corrupt(zip, at, "a directory entry", "something else");
    r.skip(4, "versions");
    const std::uint64_t flags = r.little(2, "flags");
    ZipEntry e;
    e.method = r.little(2, "a method");
    r.skip(4, "a time");
    e.crc = static_cast<std::uint32_t>(r.little(4, "a checksum"));
    e.packed = r.little(4, "a size");
    e.unpacked = r.little(4, "a size");
    const std::uint64_t name = r.little(2, "a length"), extra = r.little(2, "a length"),
                        comment = r.little(2, "a length");
    r.skip(8, "attributes");
    e.header = r.little(4, "an offset");
    if (name + extra + comment > limit - std::min(limit, r.offset()))
      corrupt(zip, at, "an entry within the directory", fmt::format("one of {} bytes more", name + extra + comment));
    e.name = r.text(name, "a name");
    read_zip64_extra(zip, r.offset(), extra, e);
    r.skip(extra + comment, "an extra field");
    if (flags & 1) corrupt(zip, at, "an archive without a password", fmt::format("'{}' encrypted", e.name));
    if (e.method != 0 && e.method != 8)
      corrupt(zip, at, "a stored or deflated member", fmt::format("'{}' with method {}", e.name, e.method));
    if (e.header > zip.size() || e.packed > zip.size() - e.header || (e.method == 0 && e.packed != e.unpacked))
      corrupt(zip, at, fmt::format("'{}' within the {} bytes of the file", e.name, zip.size()),
              fmt::format("{} bytes at {}", e.packed, e.header));
    entries.push_back(std::move(e));
  }
  return entries;
}

SourcePtr open_zip_entry(SourcePtr zip, const ZipEntry& entry,
                         const std::function<std::uint64_t(const Source& beginning)>& declared) {
  Reader r(*zip, entry.header);
  if (r.little(4, "a member's header") != local_signature)
    corrupt(*zip, entry.header, "a member's header", "something else");
  r.skip(22, "a member's header");
  const std::uint64_t name = r.little(2, "a length"), extra = r.little(2, "a length");
  r.skip(name + extra, "a member's header");
  if (entry.packed > r.left())
    corrupt(*zip, r.offset(), fmt::format("the {} bytes of '{}'", entry.packed, entry.name),
            fmt::format("{}", r.left()));
  const std::string label = fmt::format("{}({})", zip->name(), entry.name);
  const auto check = [&](std::span<const std::byte> bytes) {
    if (const std::uint32_t sum = crc32_of(bytes); sum != entry.crc)
      corrupt(*zip, r.offset(), fmt::format("checksum {:08x} for '{}'", entry.crc, entry.name),
              fmt::format("{:08x}", sum));
  };
  if (entry.method == 0) {
    if (const std::byte* bytes = zip->at(r.offset(), entry.packed)) check({bytes, entry.packed});
    return part_of(zip, r.offset(), entry.packed, label);
  }
  if (entry.unpacked > std::min<std::uint64_t>(8 * default_memory_limit, usable_memory_bytes() / 4))
    bad_input("{}: {} MiB are too much to unpack into memory: save it with numpy.savez (not compressed)", label,
              entry.unpacked >> 20);
  auto bytes = inflate_raw(*zip, r.offset(), entry.packed, entry.unpacked, declared);
  check(bytes);
  return memory_source(label, std::move(bytes));
}

}  // namespace echelon::data
