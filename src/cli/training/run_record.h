#pragma once
// What the registry keeps of a run (registry/registry.h), read from its folder: every setting of its recipe, every
// result, where its data and its first weights came from, its checkpoints, and what people say about it.

#include <memory>
#include <string>

#include "registry/index.h"
#include "world/os/disk.h"

namespace echelon::cli {

RunRecord run_record(const RunFolder& folder, const std::string& name);  // follows no link out of the folder

// The registry of a folder of runs, brought up to date.
struct OpenRegistry {
  std::unique_ptr<Disk> disk;  // for the folder of runs; what is in a run's folder is read by world/os/folder_disk.h
  std::string root;
  std::unique_ptr<Registry> registry;

  RunFolder folder(const std::string& run);  // by name, or by its path below the root; BadInput if there is none
  std::string name_of(const RunFolder& folder) const;
  // Changes what people say about a run, in its folder and in the registry.
  Labels change(const std::string& run, const std::function<void(Labels&)>& f);
};
void warn(const IndexCounts& counts);  // says on stderr which runs could not be read whole

OpenRegistry open_registry(const std::string& root, bool refresh = true);  // BadInput if there is no such folder

// Tells the registry of the run's folder of runs, if it has one, about the run; for a training, which does not fail
// because of it: what went wrong is returned, else nothing.
std::string tell_registry(const RunFolder& folder);

}  // namespace echelon::cli
