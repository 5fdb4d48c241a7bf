#pragma once
// Hashes of large files, so that a training which begins again does not read terabytes before its first step. A hash is
// kept together with the files' stamps (size, times, inode) and counts only while all of them are the same. Whatever is
// in doubt is hashed again: files changed in the last seconds, a disk without stamps, a cache that cannot be read.
//
// The cache is a folder of the user's, $XDG_CACHE_HOME/echelon or ~/.cache/echelon. Functions without state.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "world/os/disk.h"

namespace echelon::data {

struct HashCache {
  std::string folder;                       // empty: nothing is kept
  std::uint64_t least_bytes = 64u << 20;    // smaller data are always hashed
  std::int64_t settled_ns = 2'000'000'000;  // younger changes are in doubt
};
HashCache usual_hash_cache();

// What `compute` returns for these files, or has returned.
std::string cached_hash(Disk& disk, const HashCache& cache, const std::vector<std::string>& files,
                        const std::function<std::string()>& compute);

}  // namespace echelon::data
