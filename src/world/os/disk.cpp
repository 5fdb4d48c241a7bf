#include "world/os/disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "world/os/real_file.h"

namespace echelon {

namespace fs = std::filesystem;

DiskError::DiskError(std::string_view call, std::string_view path, int error_number)
    : Failure(fmt::format("{} {}: {}", call, path, std::strerror(error_number))), error_number_(error_number) {}

namespace {

class RealDisk : public Disk {
 public:
  std::unique_ptr<File> open(const std::string& path) override {
    // O_NONBLOCK: opening a pipe that nobody writes to would wait for ever. Regular files do not know the flag.
    try {
      auto file = std::make_unique<RealFile>(path, AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
      file->refuse_unless_regular();
      return file;
    } catch (const DiskError& e) {
      if (e.error_number() == ENXIO) bad_input("{}: is a socket, or a device that is not there", path);
      throw;
    }
  }
  std::unique_ptr<File> create(const std::string& path) override {
    return std::make_unique<RealFile>(path, AT_FDCWD, path, O_RDWR | O_CREAT | O_TRUNC);
  }
  std::unique_ptr<File> append_to(const std::string& path) override {
    return std::make_unique<RealFile>(path, AT_FDCWD, path, O_RDWR | O_CREAT | O_APPEND);
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
  std::optional<FileStamp> stamp(const std::string& path) override {
    struct stat s {};
    if (::stat(path.c_str(), &s) != 0 || !S_ISREG(s.st_mode)) return std::nullopt;
    return stamp_of(s);
  }

 private:
  static fs::file_status status(const std::string& path) {
    std::error_code e;
    const fs::file_status s = fs::status(path, e);
    if (e == std::errc::filename_too_long) return fs::file_status(fs::file_type::not_found);
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
  try {
    const auto file = disk.create(beside);
    file->append(bytes);
    file->sync();
  } catch (const DiskError&) {
    try {
      disk.remove_all(beside);
    } catch (const DiskError&) {
      // What there was first is what to tell.
    }
    throw;
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
