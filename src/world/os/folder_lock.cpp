#include "world/os/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

namespace echelon {

namespace {

class OpenFolder : public FolderLock {
 public:
  explicit OpenFolder(const std::string& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}
  ~OpenFolder() override {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  bool is_somebody_elses() const {
    return descriptor_ >= 0 && ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  }

 private:
  int descriptor_;
};

}  // namespace

std::unique_ptr<FolderLock> lock_folder(const std::string& path) {
  auto folder = std::make_unique<OpenFolder>(path);
  if (folder->is_somebody_elses()) return nullptr;
  return folder;
}

}  // namespace echelon
