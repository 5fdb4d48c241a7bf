#include "world/os/file_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "world/os/disk.h"

namespace echelon {

namespace {

// A file without a name, also where the file system knows no O_TMPFILE.
int open_nameless(const std::string& folder) {
  if (const int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); fd >= 0) return fd;
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) return -1;
  std::string path = folder + "/.memory-XXXXXX";
  const int fd = ::mkostemp(path.data(), O_CLOEXEC);
  if (fd >= 0) ::unlink(path.c_str());
  return fd;
}

}  // namespace

FileMemory::FileMemory(const std::string& folder, std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  const int fd = open_nameless(folder);
  if (fd < 0) throw DiskError("open memory in", folder, errno);
  if (const int error = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes)); error != 0) {
    ::close(fd);
    throw DiskError("allocate memory in", folder, error);
  }
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  const int error = errno;
  ::close(fd);
  if (data == MAP_FAILED) throw DiskError("map memory in", folder, error);
  data_ = static_cast<std::byte*>(data);
}

void FileMemory::will_need(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(bytes.data()) / page * page;
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(bytes.data()) + bytes.size();
  ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_WILLNEED);  // NOLINT: whole pages; advice that may fail
}

void FileMemory::let_go(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t begin = (reinterpret_cast<std::uintptr_t>(bytes.data()) + page - 1) / page * page;
  const std::uintptr_t end = (reinterpret_cast<std::uintptr_t>(bytes.data()) + bytes.size()) / page * page;
  if (begin < end)
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);  // NOLINT: the mapping is of a file
}

FileMemory::FileMemory(FileMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

FileMemory& FileMemory::operator=(FileMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

FileMemory::~FileMemory() {
  if (data_) ::munmap(data_, bytes_);
}

}  // namespace echelon
