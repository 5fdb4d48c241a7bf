#include "world/os/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

namespace echelon {

namespace {

class OpenFolder : public FolderLock {
 public:
  explicit OpenFolder(const std::string& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}
  ~OpenFolder() override {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  bool is_somebody_elses(int kind) const {
    return descriptor_ >= 0 && ::flock(descriptor_, kind | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  }

 private:
  int descriptor_;
};

}  // namespace

std::unique_ptr<FolderLock> lock_folder(const std::string& path) {
  auto folder = std::make_unique<OpenFolder>(path);
  // Somebody who only looks (is_folder_locked) has a shared lock for a few microseconds.
  for (int attempt = 0; attempt < 5; ++attempt) {
    if (!folder->is_somebody_elses(LOCK_EX)) return folder;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return nullptr;
}

bool is_folder_locked(const std::string& path) { return OpenFolder(path).is_somebody_elses(LOCK_SH); }

}  // namespace echelon
