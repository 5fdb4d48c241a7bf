#pragma once
// A folder in which one process at a time works. The lock is the kernel's: it is gone with the process, however that
// ends, and leaves nothing behind.

#include <memory>
#include <string>

namespace echelon {

class FolderLock {
 public:
  virtual ~FolderLock() = default;
};

// Null if somebody has it. File systems that know no locks give one that keeps nobody away.
std::unique_ptr<FolderLock> lock_folder(const std::string& path);

}  // namespace echelon
