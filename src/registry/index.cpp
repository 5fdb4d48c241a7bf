#include "registry/index.h"

#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "base/text.h"
#include "world/os/folder_lock.h"

namespace echelon {

namespace {

std::string stamp_of(Disk& disk, const RunFolder& folder) {
  std::string all;
  for (const std::string& file : {folder.recipe(), folder.metrics(), folder.summary(), labels_path(folder)}) {
    const auto stamp = disk.exists(file) ? disk.stamp(file) : std::nullopt;
    all += stamp ? fmt::format("{}.{}.{} ", stamp->size, stamp->modified_ns, stamp->inode) : "- ";
  }
  return all + (is_folder_locked(folder.path) ? "running" : "ended");
}

std::string trash_of(const std::string& root) { return root + "/.trash"; }

void check_name(const std::string& name) {
  if (name.empty() || name.starts_with('/') || name.starts_with('.') || name.find("/.") != std::string::npos ||
      name.find('\0') != std::string::npos)
    bad_input("'{}' is no name of a run", name);
}

void move_run(Disk& disk, const std::string& from, const std::string& to, const std::string& name) {
  if (const auto slash = to.find_last_of('/'); slash != std::string::npos) disk.make_directories(to.substr(0, slash));
  try {
    disk.rename(from, to);
  } catch (const DiskError& problem) {
    if (problem.error_number() == ENOTEMPTY || problem.error_number() == EEXIST)
      bad_input("{}: there is already one of this name at {}", name, to);
    throw;
  }
  disk.sync_directory(to.substr(0, to.find_last_of('/')));
}

}  // namespace

IndexCounts refresh_index(Disk& disk, const std::string& root, Registry& registry, const ReadRecord& read, bool anew) {
  IndexCounts counts;
  const std::map<std::string, std::string> before = anew ? std::map<std::string, std::string>{} : registry.stamps();
  std::map<std::string, std::string> now;
  std::vector<RunRecord> changed;
  for (const std::string& name : run_names(disk, root)) {
    const RunFolder folder{root + "/" + name};
    try {
      const std::string stamp = stamp_of(disk, folder);
      now[name] = stamp;
      const auto known = before.find(name);
      if (known != before.end() && known->second == stamp) continue;
      changed.push_back(read(folder, name));
      RunRecord& record = changed.back();
      if (record.warning.empty())
        record.stamp = stamp;
      else
        counts.warnings.push_back(record.warning);
    } catch (const Error&) {  // it is being made or removed; the next time will show
      now.erase(name);
    }
  }
  counts.runs = static_cast<int>(now.size());
  counts.read = static_cast<int>(changed.size());
  registry.in_transaction([&] {
    if (anew) registry.clear();
    for (const auto& [name, stamp] : before)
      if (!now.contains(name)) registry.remove(name), ++counts.removed;
    for (const RunRecord& record : changed) registry.put(record);
  });
  return counts;
}

std::string put_aside(Disk& disk, const std::string& root) {
  const std::string from = root + "/" + Registry::file_name;
  std::string to = from + ".damaged";
  for (int n = 2; disk.exists(to); ++n) to = fmt::format("{}.damaged-{}", from, n);
  for (const char* part : {"-wal", "-shm", ""})
    if (disk.exists(from + part)) disk.rename(from + part, to + part);
  disk.sync_directory(root);
  return to;
}

void refresh_run(Disk& disk, const std::string& root, Registry& registry, const ReadRecord& read,
                 const std::string& name) {
  const RunFolder folder{root + "/" + name};
  RunRecord record = read(folder, name);
  record.stamp = stamp_of(disk, folder);
  registry.in_transaction([&] { registry.put(record); });
}

std::string throw_away(Disk& disk, const std::string& root, const std::string& name) {
  check_name(name);
  const RunFolder folder{root + "/" + name};
  if (!disk.exists(folder.recipe()))
    bad_input("there is no run '{}' in {}{}", name, root, did_you_mean(name, run_names(disk, root)));
  const auto lock = lock_folder(folder.path);
  if (!lock) bad_input("{}: a process trains in it; stop that first", folder.path);
  for (const ModelVersion& v : read_labels(disk, folder).versions)
    if (v.stage != "archived")
      bad_input(
          "{}: {}@{} is its step {} (stage {}). If nobody needs that any more: echelon models stage {} {} archived",
          name, v.model, v.version, v.step, v.stage, v.model, v.version);
  const std::string to = trash_of(root) + "/" + name;
  move_run(disk, folder.path, to, name);
  return to;
}

std::string take_back(Disk& disk, const std::string& root, const std::string& name) {
  check_name(name);
  const std::string from = trash_of(root) + "/" + name, to = root + "/" + name;
  if (!disk.exists(RunFolder{from}.recipe()))
    bad_input("there is no run '{}' in {}{}", name, trash_of(root), did_you_mean(name, in_trash(disk, root)));
  move_run(disk, from, to, name);
  return to;
}

std::vector<std::string> in_trash(Disk& disk, const std::string& root) { return run_names(disk, trash_of(root)); }

std::int64_t take_version(Disk& disk, const std::string& root, Registry& registry, const std::string& model) {
  std::int64_t highest = registry.highest_version(model);
  for (const std::string& name : in_trash(disk, root))
    for (const ModelVersion& v : read_labels(disk, RunFolder{trash_of(root) + "/" + name}).versions)
      if (v.model == model) highest = std::max(highest, v.version);
  const std::string path = root + "/model_versions.json";
  Json given = Json::object();
  try {
    if (disk.exists(path)) given = parse_json(read_text(disk, path, 1u << 20), path);
    highest = std::max(highest, given.value(model, std::int64_t{0}));
  } catch (const Json::exception& problem) {
    bad_input("{}: damaged ({}). It has the highest version given of each model, as in {{\"digits\": 3}}: mend it",
              path, problem.what());
  }
  given[model] = ++highest;
  write_file_atomically(disk, path, given.dump(1) + "\n");
  return highest;
}

}  // namespace echelon
