#pragma once
// Hands out the batches of a run. Step t's batch is a range of one epoch (data/cursor.h), which falls to the logical
// shards; its samples are made in the background, up to `prefetch` batches ahead, into a ring of buffers allocated at
// the start. Nothing of that can be seen in the samples: `at(t)` gives the same bits whether they were read ahead or
// not, whatever was asked for before. The state of a loader is the step.
//
// Thread safety: `at` belongs to one driving thread; the batch it returns may be read by any number of threads until
// the next `at`. In the steady state nothing is allocated (see data/dataset.h).

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "data/cursor.h"
#include "data/decorators.h"
#include "data/partition.h"
#include "tensor/buffer.h"
#include "world/os/ahead.h"

namespace echelon::data {

struct LoaderOptions {
  std::uint64_t seed = 0;
  std::vector<BatchPhase> batches = {{0, 1}};  // the global batch, from which step on
  bool drop_partial = false;                   // leave out the last batch of an epoch if it is not full
  std::uint64_t shards = 1;                    // logical shards of the global batch, on all workers together
  std::optional<IndexRange> own = {};          // the shards that are loaded here (may be none); not given: all of them
  std::uint64_t parts = 1, part = 0;           // only that part of each global batch, as evenly cut as shards are; the
                                               // shards are then those of the part
  PartitionSpec partition = {};                // fixed: each part has samples of its own, and the data set is not
                                               // shuffled; batches are all of one size
  int prefetch = 2;                            // batches ahead; 0: each is made when it is asked for
  int threads = 1;                             // that make them
  std::uint64_t first_step = 0;                // where reading ahead begins (the step of a resumed run)
};

// The samples of one step, by shard and field.
class Batch {
 public:
  const Cursor& cursor() const { return cursor_; }
  // Of the global batch, on all workers together; of the part, if the loader hands out parts.
  std::uint64_t samples() const { return cursor_.samples.count; }
  std::uint64_t part() const { return part_; }
  std::uint64_t global_samples() const { return global_samples_; }
  IndexRange samples_of(std::uint64_t shard) const { return shard_samples(cursor_.samples, shard, shards_); }
  // The `samples_of(shard).count` samples of a shard that is loaded here, one after the other: [count, field's shape].
  // The memory has room for the largest shard, and starts on a cache line; past `count` it holds what it held before.
  std::span<const std::byte> field(std::uint64_t shard, std::size_t field) const;
  template <typename T>
  std::span<const T> field_as(std::uint64_t shard, std::size_t index) const {
    const auto bytes = field(shard, index);
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  void copy_from(const Batch& other);  // for whoever needs it after the loader's next `at`

 private:
  friend class Loader;
  Cursor cursor_;
  std::uint64_t part_ = 0, global_samples_ = 0;
  std::uint64_t shards_ = 1, first_own_ = 0;
  std::vector<std::size_t> sample_bytes_, shard_bytes_;  // by field: of one sample; from one shard to the next
  std::vector<Buffer> memory_;                           // by field
};

class Loader {
 public:
  // BadInput if the options do not fit the data set (empty, streams and batch differ, ...).
  Loader(DatasetPtr dataset, const LoaderOptions& options);

  const Dataset& dataset() const { return *dataset_; }
  const BatchSequence& batches() const { return batches_; }
  std::uint64_t shards() const { return options_.shards; }
  std::uint64_t largest_shard() const;  // samples of the largest shard: what an input buffer must have room for

  // The batch of `step`; valid until the next call. Fast when steps follow each other.
  const Batch& at(std::uint64_t step);
  // Another part of it; only a loader that reads nothing ahead can do that.
  const Batch& at(std::uint64_t step, std::uint64_t part);

  // Which samples of the undecorated data set a step uses, in order, all shards: for a ledger.
  std::vector<std::uint64_t> origins(std::uint64_t step) const;

  // How long `at` has kept its caller waiting, in seconds since the start: "input-bound" is this over the run's time.
  double seconds_waited() const { return ahead_->seconds_waited(); }

 private:
  void fill(std::uint64_t step, std::uint64_t part, Batch& batch) const;
  IndexRange samples_of(const Cursor& cursor, std::uint64_t part) const;

  DatasetPtr dataset_;
  LoaderOptions options_;
  IndexRange own_;
  BatchSequence batches_;
  std::vector<std::uint64_t> firsts_;  // of a fixed partition: where the samples of each part begin; else empty
  std::vector<Batch> ring_;
  std::unique_ptr<Ahead> ahead_;  // last: stops before what it uses goes away
};

}  // namespace echelon::data
