#pragma once
// The directory of a ZIP archive (also ZIP64) and its members, stored or deflated: as much as an NPZ file needs.
// Sizes are those of the central directory; every range is checked against the file before it is used, and the checksum
// of a member is checked when it is opened into memory. Encrypted and multi-disk archives are refused.

#include <string>
#include <vector>

#include "data/files/source.h"

namespace echelon::data {

struct ZipEntry {
  std::string name;
  std::uint64_t method = 0;  // 0 stored, 8 deflated
  std::uint32_t crc = 0;
  std::uint64_t packed = 0, unpacked = 0;
  std::uint64_t header = 0;  // the offset of its local header
};

std::vector<ZipEntry> read_zip_directory(const Source& zip);
// What is deflated is unpacked into memory: at most eight times default_memory_limit, or a quarter of the memory there
// is, and no further than the header of what is inside, where `declared` can read one (data/files/inflate.h).
SourcePtr open_zip_entry(SourcePtr zip, const ZipEntry& entry,
                         const std::function<std::uint64_t(const Source& beginning)>& declared = {});

}  // namespace echelon::data
