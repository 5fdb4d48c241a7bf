#include "world/os/disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace echelon {

namespace fs = std::filesystem;

DiskError::DiskError(std::string_view call, std::string_view path, int error_number)
    : Failure(fmt::format("{} {}: {}", call, path, std::strerror(error_number))), error_number_(error_number) {}

namespace {

class RealFile : public File {
 public:
  RealFile(const std::string& path, int flags) : path_(path), fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {
    if (fd_ < 0) throw DiskError("open", path_, errno);
  }
  ~RealFile() override { ::close(fd_); }

  void refuse_unless_regular() const {
    const mode_t mode = status().st_mode;
    if (S_ISREG(mode)) return;
    if (S_ISDIR(mode)) throw DiskError("open", path_, EISDIR);
    bad_input("{}: is {}, not a regular file", path_,
              S_ISFIFO(mode)   ? "a pipe"
              : S_ISSOCK(mode) ? "a socket"
                               : "a device");
  }
  std::uint64_t size() override { return static_cast<std::uint64_t>(status().st_size); }
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> into) override {
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
  void append(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw DiskError("write", path_, errno);
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
  }
  void sync() override {
    if (::fsync(fd_) != 0) throw DiskError("sync", path_, errno);
  }

 private:
  struct stat status() const {
    struct stat s {};
    if (::fstat(fd_, &s) != 0) throw DiskError("stat", path_, errno);
    return s;
  }

  std::string path_;
  int fd_;
};

class RealDisk : public Disk {
 public:
  std::unique_ptr<File> open(const std::string& path) override {
    // O_NONBLOCK: opening a pipe that nobody writes to would wait for ever. Regular files do not know the flag.
    try {
      auto file = std::make_unique<RealFile>(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
      file->refuse_unless_regular();
      return file;
    } catch (const DiskError& e) {
      if (e.error_number() == ENXIO) bad_input("{}: is a socket, or a device that is not there", path);
      throw;
    }
  }
  std::unique_ptr<File> create(const std::string& path) override {
    return std::make_unique<RealFile>(path, O_RDWR | O_CREAT | O_TRUNC);
  }
  std::unique_ptr<File> append_to(const std::string& path) override {
    return std::make_unique<RealFile>(path, O_RDWR | O_CREAT | O_APPEND);
  }
  void rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) throw DiskError("rename", from, errno);
  }
  void make_directories(const std::string& path) override {
    std::error_code e;
    fs::create_directories(path, e);
    if (e) throw DiskError("mkdir", path, e.value());
  }
  void remove_all(const std::string& path) override {
    std::error_code e;
    fs::remove_all(path, e);
    if (e) throw DiskError("remove", path, e.value());
  }
  void sync_directory(const std::string& path) override {
    const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) throw DiskError("open", path, errno);
    const int failed = ::fsync(fd), error = errno;
    ::close(fd);
    if (failed != 0) throw DiskError("sync", path, error);
  }
  bool exists(const std::string& path) override { return fs::exists(status(path)); }
  bool is_directory(const std::string& path) override { return fs::is_directory(status(path)); }
  std::vector<std::string> list(const std::string& path) override {
    std::vector<std::string> names;
    std::error_code e;
    for (fs::directory_iterator it(path, e), end; !e && it != end; it.increment(e))
      names.push_back(it->path().filename().string());
    if (e) throw DiskError("list", path, e.value());
    std::ranges::sort(names);
    return names;
  }

 private:
  static fs::file_status status(const std::string& path) {
    std::error_code e;
    const fs::file_status s = fs::status(path, e);
    if (s.type() == fs::file_type::none) throw DiskError("stat", path, e.value());
    return s;
  }
};

std::string parent_of(const std::string& path) {
  const auto parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

}  // namespace

std::unique_ptr<Disk> make_real_disk() { return std::make_unique<RealDisk>(); }

void write_file_atomically(Disk& disk, const std::string& path, std::span<const std::byte> bytes) {
  const std::string beside = path + ".new";
  {
    const auto file = disk.create(beside);
    file->append(bytes);
    file->sync();
  }
  disk.rename(beside, path);
  disk.sync_directory(parent_of(path));
}

void write_file_atomically(Disk& disk, const std::string& path, std::string_view text) {
  write_file_atomically(disk, path, std::as_bytes(std::span(text)));
}

std::vector<std::byte> read_file(Disk& disk, const std::string& path, std::uint64_t limit) {
  const auto file = disk.open(path);
  const std::uint64_t size = file->size();
  if (size > limit) bad_input("{}: {} bytes, but at most {} are read here", path, size, limit);
  std::vector<std::byte> bytes(size);
  bytes.resize(file->read_at(0, bytes));
  return bytes;
}

std::string read_text(Disk& disk, const std::string& path, std::uint64_t limit) {
  const auto bytes = read_file(disk, path, limit);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace echelon
