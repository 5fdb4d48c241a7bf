#pragma once
// The operating system's disk for somebody who works in one folder that others may have prepared: below it no symbolic
// link is followed, whatever changes meanwhile, and only regular files are opened. So nothing outside the folder is
// read, changed or removed in the belief that it is inside. Who put a link there is told to put the file itself (a
// BadInput). Paths that are not below the folder are as on any disk; the folder itself may be reached by links.
//
// Thread-safe as the real disk.

#include <memory>
#include <string>

#include "world/os/disk.h"

namespace echelon {

std::unique_ptr<Disk> make_folder_disk(const std::string& folder);  // DiskError if there is no such folder

// BadInput that names everything below the folder that is neither a regular file nor a folder: links, pipes, devices.
void refuse_special_files(const std::string& folder);

}  // namespace echelon
