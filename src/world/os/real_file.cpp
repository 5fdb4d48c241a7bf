#include "world/os/real_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace echelon {

RealFile::RealFile(std::string path, int parent, const std::string& name, int flags)
    : path_(std::move(path)), fd_(::openat(parent, name.c_str(), flags | O_CLOEXEC, 0644)) {
  if (fd_ < 0) throw DiskError("open", path_, errno);
}

RealFile::~RealFile() { ::close(fd_); }

void RealFile::refuse_unless_regular() const {
  const mode_t mode = status().st_mode;
  if (S_ISREG(mode)) return;
  if (S_ISDIR(mode)) throw DiskError("open", path_, EISDIR);
  bad_input("{}: is {}, not a regular file", path_,
            S_ISFIFO(mode)   ? "a pipe"
            : S_ISSOCK(mode) ? "a socket"
                             : "a device");
}

void RealFile::clear() {
  if (::ftruncate(fd_, 0) != 0) throw DiskError("truncate", path_, errno);
}

std::uint64_t RealFile::size() { return static_cast<std::uint64_t>(status().st_size); }

std::size_t RealFile::read_at(std::uint64_t offset, std::span<std::byte> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t n = ::pread(fd_, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw DiskError("read", path_, errno);
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

void RealFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw DiskError("write", path_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

void RealFile::sync() {
  if (::fsync(fd_) != 0) throw DiskError("sync", path_, errno);
}

FileStamp stamp_of(const struct stat& s) {
  const auto ns = [](const timespec& t) { return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec; };
  return {.size = static_cast<std::uint64_t>(s.st_size),
          .device = s.st_dev,
          .inode = s.st_ino,
          .modified_ns = ns(s.st_mtim),
          .changed_ns = ns(s.st_ctim)};
}

struct stat RealFile::status() const {
  struct stat s {};
  if (::fstat(fd_, &s) != 0) throw DiskError("stat", path_, errno);
  return s;
}

}  // namespace echelon
