#include "world/os/folder_disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "world/os/real_file.h"

namespace echelon {

namespace {

class Directory {
 public:
  explicit Directory(int fd = -1) : fd_(fd) {}
  Directory(Directory&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Directory& operator=(Directory&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Directory() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

// Where a path leads: its last name in an open directory. No name: the folder itself.
struct Place {
  Directory parent;
  std::string name;
};

constexpr int look_only = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

class FolderDisk : public Disk {
 public:
  explicit FolderDisk(const std::string& folder)
      : folder_(folder), root_(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
    if (root_.fd() < 0) throw DiskError("open", folder, errno);
  }

  std::unique_ptr<File> open(const std::string& path) override {
    if (!is_below(path)) return elsewhere_->open(path);
    return open_file(path, O_RDONLY | O_NOCTTY);
  }
  std::unique_ptr<File> create(const std::string& path) override {
    if (!is_below(path)) return elsewhere_->create(path);
    auto file = open_file(path, O_RDWR | O_CREAT);  // nothing is truncated before it is known to be a file
    file->clear();
    return file;
  }
  std::unique_ptr<File> append_to(const std::string& path) override {
    if (!is_below(path)) return elsewhere_->append_to(path);
    return open_file(path, O_RDWR | O_CREAT | O_APPEND);
  }
  void rename(const std::string& from, const std::string& to) override {
    if (!is_below(from) || !is_below(to)) return elsewhere_->rename(from, to);
    const Place a = locate(from), b = locate(to);
    if (::renameat(a.parent.fd(), a.name.c_str(), b.parent.fd(), b.name.c_str()) != 0)
      throw DiskError("rename", from, errno);
  }
  void make_directories(const std::string& path) override {
    if (!is_below(path)) return elsewhere_->make_directories(path);
    locate(path + "/.", true);
  }
  void remove_all(const std::string& path) override {
    if (!is_below(path)) return elsewhere_->remove_all(path);
    try {
      const Place place = locate(path);
      remove(place.parent.fd(), place.name, path);
    } catch (const DiskError& e) {
      if (e.error_number() != ENOENT) throw;
    }
  }
  void sync_directory(const std::string& path) override {
    if (!is_below(path)) return elsewhere_->sync_directory(path);
    const Directory directory = open_directory(path);
    if (::fsync(directory.fd()) != 0) throw DiskError("sync", path, errno);
  }
  bool exists(const std::string& path) override {
    return is_below(path) ? mode_of(path) != 0 : elsewhere_->exists(path);
  }
  bool is_directory(const std::string& path) override {
    if (!is_below(path)) return elsewhere_->is_directory(path);
    const mode_t mode = mode_of(path);
    if (S_ISLNK(mode)) refuse_link(path);
    return S_ISDIR(mode);
  }
  std::vector<std::string> list(const std::string& path) override {
    if (!is_below(path)) return elsewhere_->list(path);
    const Directory directory = open_directory(path);
    auto names = names_in(directory.fd(), path);
    std::ranges::sort(names);
    return names;
  }
  std::optional<FileStamp> stamp(const std::string& path) override {
    if (!is_below(path)) return elsewhere_->stamp(path);
    const Place place = locate(path);
    struct stat s {};
    if (::fstatat(place.parent.fd(), place.name.c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(s.st_mode))
      return std::nullopt;
    return stamp_of(s);
  }

 private:
  [[noreturn]] static void refuse_link(const std::string& path) {
    bad_input(
        "{}: is a symbolic link, and a run's files are not looked for elsewhere: put the file or folder itself there, "
        "or move the whole run and name it with --run",
        path);
  }

  bool is_below(const std::string& path) const {
    return path == folder_ || (path.starts_with(folder_) && path[folder_.size()] == '/');
  }

  // Every folder on the way is opened from the one above it, so that none can be exchanged for a link meanwhile.
  Place locate(const std::string& path, bool make = false) const {
    Place place{Directory(::openat(root_.fd(), ".", look_only)), "."};
    if (place.parent.fd() < 0) throw DiskError("open", path, errno);
    std::size_t at = folder_.size();
    for (;;) {
      while (at < path.size() && path[at] == '/') ++at;
      if (at == path.size()) return place;
      const std::size_t end = std::min(path.find('/', at), path.size());
      std::string name = path.substr(at, end - at);
      at = end;
      if (name == "..") throw DiskError("open", path, EINVAL);
      if (place.name != ".") enter(place, make, path);
      place.name = std::move(name);
    }
  }
  static void enter(Place& place, bool make, const std::string& path) {
    const char* name = place.name.c_str();
    if (make && ::mkdirat(place.parent.fd(), name, 0755) != 0 && errno != EEXIST) throw DiskError("mkdir", path, errno);
    Directory next(::openat(place.parent.fd(), name, look_only));
    if (next.fd() < 0) {
      const int reason = errno;
      if (is_link(place)) refuse_link(path);
      throw DiskError("open", path, reason);
    }
    place.parent = std::move(next);
  }
  static bool is_link(const Place& place) {
    struct stat s {};
    return ::fstatat(place.parent.fd(), place.name.c_str(), &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(s.st_mode);
  }

  std::unique_ptr<RealFile> open_file(const std::string& path, int flags) const {
    const Place place = locate(path);
    try {
      auto file = std::make_unique<RealFile>(path, place.parent.fd(), place.name, flags | O_NOFOLLOW | O_NONBLOCK);
      file->refuse_unless_regular();
      return file;
    } catch (const DiskError& e) {
      if (e.error_number() == ELOOP) refuse_link(path);
      if (e.error_number() == EISDIR) bad_input("{}: is a folder, not a regular file", path);
      if (e.error_number() == ENXIO) bad_input("{}: is a socket, or a device that is not there", path);
      throw;
    }
  }
  Directory open_directory(const std::string& path) const {
    const Place place = locate(path);
    Directory directory(
        ::openat(place.parent.fd(), place.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (directory.fd() < 0) {
      const int reason = errno;
      if (is_link(place)) refuse_link(path);
      throw DiskError("open", path, reason);
    }
    return directory;
  }
  // 0 if there is nothing.
  mode_t mode_of(const std::string& path) const {
    try {
      const Place place = locate(path);
      struct stat s {};
      if (::fstatat(place.parent.fd(), place.name.c_str(), &s, AT_SYMLINK_NOFOLLOW) == 0) return s.st_mode;
      if (errno != ENOENT) throw DiskError("stat", path, errno);
    } catch (const DiskError& e) {
      if (e.error_number() != ENOENT && e.error_number() != ENOTDIR) throw;
    }
    return 0;
  }

  static std::vector<std::string> names_in(int directory, const std::string& path) {
    DIR* stream = ::fdopendir(::fcntl(directory, F_DUPFD_CLOEXEC, 0));
    if (!stream) throw DiskError("list", path, errno);
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(stream))
      if (const std::string name = entry->d_name; name != "." && name != "..") names.push_back(name);
    ::closedir(stream);
    return names;
  }
  // A link is removed itself; what it points to stays.
  static void remove(int parent, const std::string& name, const std::string& path) {
    struct stat s {};
    if (::fstatat(parent, name.c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) return;
      throw DiskError("stat", path, errno);
    }
    if (S_ISDIR(s.st_mode)) {
      const Directory directory(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (directory.fd() < 0) throw DiskError("open", path, errno);
      for (const std::string& entry : names_in(directory.fd(), path)) remove(directory.fd(), entry, path + "/" + entry);
    }
    if (::unlinkat(parent, name.c_str(), S_ISDIR(s.st_mode) ? AT_REMOVEDIR : 0) != 0 && errno != ENOENT)
      throw DiskError("remove", path, errno);
  }

  const std::string folder_;
  const Directory root_;
  const std::unique_ptr<Disk> elsewhere_ = make_real_disk();
};

}  // namespace

std::unique_ptr<Disk> make_folder_disk(const std::string& folder) { return std::make_unique<FolderDisk>(folder); }

void refuse_special_files(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> found;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const fs::file_type type = it->symlink_status(error).type();
    if (!error && type != fs::file_type::regular && type != fs::file_type::directory)
      found.push_back(fmt::format("{} ({})", it->path().string(),
                                  type == fs::file_type::symlink ? "a symbolic link"
                                  : type == fs::file_type::fifo  ? "a pipe"
                                                                 : "a device or socket"));
  }
  if (error) throw DiskError("list", folder, error.value());
  std::ranges::sort(found);
  std::string all;
  for (const std::string& f : found) all += "\n  " + f;
  if (!all.empty()) bad_input("{}: a run's folder holds files and folders only, but there is{}", folder, all);
}

}  // namespace echelon
