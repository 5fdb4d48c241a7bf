#pragma once
// Saves checkpoints beside the training. `save` copies the tensors once, into memory that is kept for the next time,
// and returns; hashing, writing, syncing and the removal of old checkpoints happen in the background. A save that fails
// (a full disk) leaves the checkpoints before it as they were, is reported by `results`, and training goes on.
//
// Belongs to the training's thread. The destructor waits for the save that is under way.

#include <cstdint>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tensor/buffer.h"
#include "track/checkpoint.h"
#include "world/os/background.h"
#include "world/os/clock.h"
#include "world/os/file_memory.h"

namespace echelon {

struct CheckpointPolicy {
  int keep_last = 3;
  bool keep_best = true;
};

struct SaveResult {
  std::int64_t step = 0;
  bool saved = false;
  bool skipped = false;  // left out, because the one before was still being written
  std::string path;
  std::string weights_sha256;
  double seconds = 0;   // in the background
  std::string warning;  // why it was not saved, or what else went wrong; empty if all is well
};

class Checkpointer {
 public:
  enum class IfBusy { skip, wait };  // what to do when the save before is not done yet

  // `worker` is for this object alone. `disk` and `clock` must outlive it. `memory_folder`: the copy lies in a file
  // there (world/os/file_memory.h); empty: in memory.
  Checkpointer(Disk& disk, Clock& clock, std::unique_ptr<Background> worker, std::string directory,
               CheckpointPolicy policy, std::string memory_folder = {});
  ~Checkpointer();

  // `after`: something that has to be on disk before this checkpoint is (the metrics up to this step).
  void save(const TrainingPosition& position, std::span<const TensorView> weights, std::span<const TensorView> state,
            IfBusy if_busy, std::shared_future<void> after = {});

  std::vector<SaveResult> results();  // of what has ended since the last call; does not wait
  std::vector<SaveResult> finish();   // the same, after waiting for the save that is under way

 private:
  // A copy of tensors in memory of our own.
  class Snapshot {
   public:
    void take(std::span<const TensorView> weights, std::span<const TensorView> state, const std::string& folder);
    std::span<const TensorView> weights() const { return std::span(views_).first(weights_); }
    std::span<const TensorView> state() const { return std::span(views_).subspan(weights_); }

   private:
    Buffer memory_;
    FileMemory file_;
    std::vector<TensorView> views_;
    std::size_t weights_ = 0;
  };

  void persist(const TrainingPosition& position, const std::shared_future<void>& after);  // runs in the background
  void collect();

  Disk& disk_;
  Clock& clock_;
  const std::string directory_;
  const CheckpointPolicy policy_;
  const std::string memory_folder_;
  Snapshot snapshot_;   // the worker's while `running_` is valid, else ours
  SaveResult outcome_;  // likewise
  std::vector<SaveResult> results_;
  std::future<void> running_;
  std::unique_ptr<Background> worker_;  // last: ends before what its job touches
};

}  // namespace echelon
