#pragma once
// A file of the operating system. Private to the disks of this folder.

#include <string>

#include "world/os/disk.h"

struct stat;

namespace echelon {

FileStamp stamp_of(const struct stat& status);

class RealFile : public File {
 public:
  // Opens `name`, relative to the open directory `parent` (AT_FDCWD: as usual); `path` is for messages. The flags are
  // open's.
  RealFile(std::string path, int parent, const std::string& name, int flags);
  ~RealFile() override;
  RealFile(const RealFile&) = delete;

  void refuse_unless_regular() const;  // BadInput
  void clear();                        // to no bytes
  std::uint64_t size() override;
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> into) override;
  void append(std::span<const std::byte> bytes) override;
  void sync() override;

 private:
  struct stat status() const;

  std::string path_;
  int fd_;
};

}  // namespace echelon
