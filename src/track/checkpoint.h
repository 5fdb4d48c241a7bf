#pragma once
// A checkpoint is a folder `step-N` with model.safetensors (the weights), state.safetensors (optimizer and whatever
// else has bytes) and manifest.json (track/manifest.h), which is written last.
//
// Nothing is lost: the folder is written as `step-N.new`, every file synced, the folder renamed, its parent synced. At
// every moment, also of a crash or a full disk, the checkpoints that were there before are whole. Reading believes
// nothing that the hashes do not confirm.
//
// Functions without state; errors are DiskError when the disk fails and BadInput when what is on it is not a
// checkpoint.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "track/manifest.h"
#include "track/safetensors.h"
#include "world/os/disk.h"

namespace echelon {

inline constexpr const char* model_file = "model.safetensors";
inline constexpr const char* state_file = "state.safetensors";
inline constexpr const char* manifest_file = "manifest.json";

struct SavedCheckpoint {
  std::string path;
  Manifest manifest;
};

// Writes `parent`/step-N (replacing one of the same step). `before_publishing` runs when all is written and synced,
// just before the rename: what must be on disk when the checkpoint is, can wait for it there.
SavedCheckpoint write_checkpoint(Disk& disk, const std::string& parent, const TrainingPosition& position,
                                 std::span<const TensorView> weights, std::span<const TensorView> state,
                                 const std::function<void()>& before_publishing = {});

// A checkpoint whose every byte was verified when it was opened, and whose folder is named after its step.
struct Checkpoint {
  std::string path;
  Manifest manifest;
  SafetensorsFile weights, state;
};

Checkpoint open_checkpoint(Disk& disk, const std::string& path);

// The checkpoints in `parent` by name only: not verified. Newest first.
struct CheckpointEntry {
  std::int64_t step = 0;
  std::string path;
};
std::vector<CheckpointEntry> list_checkpoints(Disk& disk, const std::string& parent);

struct CheckpointSearch {
  std::optional<Checkpoint> found;
  std::vector<std::string> skipped;  // one message for every newer one, or one that may be better, that cannot be used
};
CheckpointSearch latest_valid(Disk& disk, const std::string& parent);
// The one with the best score; of equal ones that with the lowest loss, then the earliest. The newest if none has a
// score.
CheckpointSearch best_valid(Disk& disk, const std::string& parent);

// Removes the remains of saves and removals that were cut short, and gives a replaced checkpoint its name back.
void remove_remains(Disk& disk, const std::string& parent);

// Checkpoints that are needed for another reason than resuming: pruning leaves these steps alone from now on. An empty
// list forgets all.
void keep_checkpoints(Disk& disk, const std::string& parent, const std::vector<std::int64_t>& steps);
std::vector<std::int64_t> kept_checkpoints(Disk& disk, const std::string& parent);  // what was said last

// The same, and removes what is older than the `keep_last` newest up to `current_step`, but never the one with the best
// score if `keep_best`, nor one of kept_checkpoints().
void prune_checkpoints(Disk& disk, const std::string& parent, std::int64_t current_step, int keep_last, bool keep_best);

}  // namespace echelon
