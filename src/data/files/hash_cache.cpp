#include "data/files/hash_cache.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/sha256.h"
#include "world/os/clock.h"
#include "world/os/host.h"

namespace echelon::data {

HashCache usual_hash_cache() {
  std::string root = environment("XDG_CACHE_HOME");
  if (const std::string home = environment("HOME"); root.empty() && !home.empty()) root = home + "/.cache";
  return {.folder = root.empty() ? "" : root + "/echelon/content"};
}

namespace {

// Of the stamps of all files; empty if they are in doubt, or too small to be worth it.
std::string stamps_hash(Disk& disk, const HashCache& cache, const std::vector<std::string>& files) {
  const auto now = static_cast<std::int64_t>(make_real_clock()->unix_seconds() * 1e9);
  Sha256 hash;
  std::uint64_t bytes = 0;
  for (const std::string& file : files) {
    const auto stamp = disk.stamp(file);
    if (!stamp || std::max(stamp->modified_ns, stamp->changed_ns) + cache.settled_ns > now) return "";
    bytes += stamp->size;
    for (const std::uint64_t number : {stamp->size, stamp->device, stamp->inode}) hash.update_u64(number);
    hash.update_u64(static_cast<std::uint64_t>(stamp->modified_ns));
    hash.update_u64(static_cast<std::uint64_t>(stamp->changed_ns));
  }
  return bytes < cache.least_bytes ? "" : hash.hex();
}

std::string kept_hash(Disk& disk, const std::string& path, const std::string& stamps) {
  try {
    if (!disk.exists(path)) return "";
    const Json json = parse_json(read_text(disk, path, 4096), path);
    if (!json.is_object() || json.value("stamps", Json()) != stamps) return "";
    const Json hash = json.value("hash", Json());
    return hash.is_string() ? hash.get<std::string>() : "";
  } catch (const Error&) {
    return "";
  }
}

}  // namespace

std::string cached_hash(Disk& disk, const HashCache& cache, const std::vector<std::string>& files,
                        const std::function<std::string()>& compute) {
  const std::string stamps = cache.folder.empty() ? "" : stamps_hash(disk, cache, files);
  if (stamps.empty()) return compute();
  Sha256 names;
  for (const std::string& file : files) {
    names.update_u64(file.size());
    names.update(file);
  }
  const std::string path = cache.folder + "/" + names.hex();
  if (std::string kept = kept_hash(disk, path, stamps); kept.size() == 64) return kept;
  const std::string hash = compute();
  try {
    if (stamps_hash(disk, cache, files) != stamps) return hash;  // changed while they were read
    disk.make_directories(cache.folder);
    write_file_atomically(disk, path, Json{{"stamps", stamps}, {"hash", hash}}.dump());
  } catch (const DiskError&) {
    // It will be computed again.
  }
  return hash;
}

}  // namespace echelon::data
