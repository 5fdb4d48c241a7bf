#include "track/checkpointer.h"

#include <cstring>

namespace echelon {

void Checkpointer::Snapshot::take(std::span<const TensorView> weights, std::span<const TensorView> state,
                                  const std::string& folder) {
  std::size_t bytes = 0;
  for (const auto part : {weights, state})
    for (const auto& t : part) bytes += aligned(t.bytes.size());
  if (folder.empty() && memory_.bytes() < bytes) memory_ = Buffer(bytes);
  if (!folder.empty() && file_.bytes() < bytes) file_ = FileMemory(folder, bytes);
  std::byte* memory = folder.empty() ? memory_.data() : file_.as<std::byte>().data();
  views_.clear();
  weights_ = weights.size();
  std::size_t at = 0;
  for (const auto part : {weights, state})
    for (const auto& t : part) {
      std::byte* copy = memory + at;
      if (!t.bytes.empty()) std::memcpy(copy, t.bytes.data(), t.bytes.size());
      views_.push_back({t.name, t.dtype, t.shape, {copy, t.bytes.size()}});
      at += aligned(t.bytes.size());
    }
}

Checkpointer::Checkpointer(Disk& disk, Clock& clock, std::unique_ptr<Background> worker, std::string directory,
                           CheckpointPolicy policy, std::string memory_folder)
    : disk_(disk),
      clock_(clock),
      directory_(std::move(directory)),
      policy_(policy),
      memory_folder_(std::move(memory_folder)),
      worker_(std::move(worker)) {}

Checkpointer::~Checkpointer() {
  if (running_.valid()) running_.wait();
}

void Checkpointer::collect() {
  running_.get();
  results_.push_back(std::move(outcome_));
}

void Checkpointer::save(const TrainingPosition& position, std::span<const TensorView> weights,
                        std::span<const TensorView> state, IfBusy if_busy, std::shared_future<void> after) {
  if (running_.valid()) {
    if (if_busy == IfBusy::skip && !is_done(running_)) {
      SaveResult skipped;
      skipped.step = position.step;
      skipped.skipped = true;
      skipped.warning =
          fmt::format("checkpoint of step {} left out: the disk is still busy with the one before", position.step);
      results_.push_back(std::move(skipped));
      return;
    }
    collect();
  }
  snapshot_.take(weights, state, memory_folder_);
  outcome_ = {};
  running_ = worker_->post([this, position, after = std::move(after)] { persist(position, after); });
}

void Checkpointer::persist(const TrainingPosition& position, const std::shared_future<void>& after) {
  const double start = clock_.seconds();
  outcome_.step = position.step;
  try {
    const auto wait = [&] {
      if (after.valid()) after.wait();
    };
    const auto saved = write_checkpoint(disk_, directory_, position, snapshot_.weights(), snapshot_.state(), wait);
    outcome_.saved = true;
    outcome_.path = saved.path;
    outcome_.weights_sha256 = saved.manifest.weights_sha256;
  } catch (const std::exception& e) {
    outcome_.warning = e.what();
  }
  try {
    // After a failure too: what it left may be what fills the disk.
    const std::string half = fmt::format("{}/step-{}.new", directory_, position.step);
    if (outcome_.saved)
      prune_checkpoints(disk_, directory_, position.step, policy_.keep_last, policy_.keep_best);
    else
      disk_.remove_all(half);
  } catch (const std::exception& e) {
    if (outcome_.saved) outcome_.warning = fmt::format("old checkpoints could not be removed: {}", e.what());
  }
  outcome_.seconds = clock_.seconds() - start;
}

std::vector<SaveResult> Checkpointer::results() {
  if (running_.valid() && is_done(running_)) collect();
  return std::exchange(results_, {});
}

std::vector<SaveResult> Checkpointer::finish() {
  if (running_.valid()) collect();
  return std::exchange(results_, {});
}

}  // namespace echelon
