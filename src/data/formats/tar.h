#pragma once
// The members of a tar archive (ustar, with GNU's and POSIX's long names), one after the other, without unpacking them.
// Every header's checksum is checked, and every size against the file; an archive without its end mark is truncated.

#include <functional>
#include <string>

#include "data/files/source.h"

namespace echelon::data {

struct TarMember {
  std::string name;
  std::uint64_t offset = 0, size = 0;  // of its content, in the archive
};

// Calls `use` for every regular file in the archive.
void read_tar(const Source& tar, const std::function<void(const TarMember&)>& use);

// The header block (512 bytes) of a regular file, for writing; names of up to 100 bytes.
std::string tar_header(const std::string& name, std::uint64_t size);

}  // namespace echelon::data
