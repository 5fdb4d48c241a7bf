#pragma once
// Where a verb is about to write a file.

#include <string>

#include "base/error.h"
#include "world/os/disk.h"

namespace echelon::cli {

// BadInput if there is no folder in which `path` could be made: before any work is done for it.
inline void expect_folder_of(Disk& disk, const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos || slash == 0) return;
  if (const std::string folder = path.substr(0, slash); !disk.is_directory(folder))
    bad_input("{}: there is no folder {}. Make it first: mkdir -p {}", path, folder, folder);
}

}  // namespace echelon::cli
