#pragma once
// A run's snapshots in little space: checkpoints/step-N becomes archive/step-N.snapshot, which holds what differs from
// the snapshot before it (registry/word_planes.h), and becomes the same bytes again. A file holds the step, the step it
// differs from, and size and SHA-256 of every file of the checkpoint; what comes out is compared with them.
//
// Where the caller can train (Retrain), every second snapshot holds no more than that: training gives the same bits
// again, so the one before it and the recipe say everything.
//
// DiskError when the disk fails, BadInput for what is no archive.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "track/run.h"

namespace echelon {

using SnapshotFiles = std::map<std::string, std::vector<std::byte>>;  // by name

struct SnapshotHeader {
  struct Entry {
    std::string name;
    std::uint64_t bytes = 0, packed = 0;
    bool delta = false;  // to the file of the same name of the base
    std::string sha256;
  };
  std::int64_t step = 0, base = -1;  // -1: whole
  bool retrained = false;            // holds nothing: what training makes of the base until this step
  std::vector<Entry> files;
};

std::string archive_folder(const RunFolder& folder);

// Trains from the checkpoint `files` of step `from` on, and gives the files of the checkpoint at step `to`; none if
// there is no such.
using Retrain =
    std::function<std::optional<SnapshotFiles>(std::int64_t from, const SnapshotFiles& files, std::int64_t to)>;

// A snapshot as one file's bytes, and back. `base` may be null.
std::vector<std::byte> pack_snapshot(std::int64_t step, const SnapshotFiles& files, std::int64_t base_step,
                                     const SnapshotFiles* base);
// The same of one that is retrained from `base_step`.
std::vector<std::byte> pack_retrained(std::int64_t step, const SnapshotFiles& files, std::int64_t base_step);
SnapshotHeader read_snapshot_header(std::span<const std::byte> packed, const std::string& where);
SnapshotFiles unpack_snapshot(std::span<const std::byte> packed, const SnapshotFiles* base, const std::string& where,
                              const Retrain& retrain = {});

struct ArchiveResult {
  int snapshots = 0;                                      // in the archive now
  int retrained = 0;                                      // of these, how many are trained again when they are wanted
  std::int64_t not_retrained = -1;                        // the step at which that gave other bits, if it did
  std::uint64_t plain = 0;                                // bytes of their files
  std::uint64_t archived = 0;                             // bytes of the archive
  std::uint64_t weights_plain = 0, weights_archived = 0;  // of these, the weights alone
  std::vector<std::int64_t> removed;                      // steps whose checkpoints were removed
};

// Puts every checkpoint into the archive that neither eval, nor a resume, nor a registered model takes (not the newest,
// not the best, not one of registered_steps), reads it back, compares, and then removes it. With `retrain` every second
// one is retrained, unless that gives other bits: then it is stored, and nothing more is tried.
ArchiveResult archive_checkpoints(Disk& disk, const RunFolder& folder, const Retrain& retrain = {});

std::vector<std::int64_t> archived_steps(Disk& disk, const RunFolder& folder);  // in order
// The files of an archived checkpoint, verified. BadInput if it is to be retrained and there is no `retrain`.
SnapshotFiles read_archived(Disk& disk, const RunFolder& folder, std::int64_t step, const Retrain& retrain = {});
// Puts one back as checkpoints/step-N, unless it is there.
std::string restore_checkpoint(Disk& disk, const RunFolder& folder, std::int64_t step, const Retrain& retrain = {});

}  // namespace echelon
