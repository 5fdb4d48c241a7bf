#pragma once
// A lock on a folder, so that one process at a time works in it. The kernel holds it: it ends with the process, however
// that ends, and leaves no file behind.

#include <memory>
#include <string>

namespace echelon {

class FolderLock {
 public:
  virtual ~FolderLock() = default;
};

// Null if another process has it. On a file system without locks it is given to everybody.
std::unique_ptr<FolderLock> lock_folder(const std::string& path);

// Whether a process has it at this moment. (A process that asks for the lock meanwhile asks again.)
bool is_folder_locked(const std::string& path);

}  // namespace echelon
