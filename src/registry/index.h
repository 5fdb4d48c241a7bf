#pragma once
// Brings the registry up to date with the folders of runs: runs whose files have changed since are read again, those
// that are gone are removed. How a run becomes a record is the caller's to say, who knows recipes.
//
// Trash: a run that is thrown away becomes runs/.trash/NAME, and can be taken back.

#include <functional>
#include <string>

#include "registry/registry.h"

namespace echelon {

using ReadRecord = std::function<RunRecord(const RunFolder& folder, const std::string& name)>;

struct IndexCounts {
  int runs = 0, read = 0, removed = 0;
  std::vector<std::string> warnings;  // of runs that could not be read whole; they are read again the next time
};

// `anew`: everything is read again. A run that cannot be read is left out.
IndexCounts refresh_index(Disk& disk, const std::string& root, Registry& registry, const ReadRecord& read,
                          bool anew = false);

// Moves a database that is damaged aside, with its log; its new path.
std::string put_aside(Disk& disk, const std::string& root);

// One run alone, because it has just changed.
void refresh_run(Disk& disk, const std::string& root, Registry& registry, const ReadRecord& read,
                 const std::string& name);

// Moves a run to the trash, and back. BadInput while a process trains in it, while a registered model is one of its
// checkpoints, or if there is none of that name.
std::string throw_away(Disk& disk, const std::string& root, const std::string& name);  // its path there
std::string take_back(Disk& disk, const std::string& root, const std::string& name);
std::vector<std::string> in_trash(Disk& disk, const std::string& root);

// The number of the next version of a model: above all that were ever given, also to runs that are in the trash or gone
// for good. It is kept in model_versions.json beside the runs, and not given again. To be called within a transaction.
std::int64_t take_version(Disk& disk, const std::string& root, Registry& registry, const std::string& model);

}  // namespace echelon
