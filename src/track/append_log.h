#pragma once
// A file that only grows, and that survives a disk which refuses for a while: bytes that could not be written are kept
// (up to a limit), and once the disk works again they continue exactly where it left off, so there is never a torn or a
// doubled record. One thread at a time.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "world/os/disk.h"

namespace echelon {

class AppendLog {
 public:
  AppendLog(Disk& disk, std::string path, std::size_t most_kept = 4u << 20);

  // Writes the record behind all before it. DiskError if the disk refuses: the record is kept, nothing has to be done.
  void append(std::string_view record);
  void sync();  // writes what was kept, and waits until all is on the medium; DiskError

  const std::string& path() const { return path_; }
  std::int64_t dropped() const { return dropped_; }  // whole records, because too much was kept already

 private:
  void write_kept();

  Disk& disk_;
  const std::string path_;
  const std::size_t most_kept_;
  std::unique_ptr<File> file_;
  std::string kept_;
  std::uint64_t size_ = 0;  // of the file, when the first byte of kept_ was not in it yet
  std::int64_t dropped_ = 0;
};

}  // namespace echelon
