#include "data/cursor.h"

#include <algorithm>

#include "base/error.h"

namespace echelon::data {

IndexRange shard_samples(const IndexRange& batch, std::uint64_t shard, std::uint64_t shards) {
  const std::uint64_t begin = shard * batch.count / shards, end = (shard + 1) * batch.count / shards;
  return {batch.first + begin, end - begin};
}

BatchSequence::BatchSequence(std::uint64_t samples, std::vector<BatchPhase> phases, bool drop_partial)
    : samples_(samples), drop_partial_(drop_partial) {
  if (samples == 0) bad_input("the data set is empty: there is nothing to train on");
  if (phases.empty() || phases.front().step != 0) bad_input("the first batch size must hold from step 0 on");
  for (const auto& p : phases) {
    if (p.batch == 0) bad_input("a batch has at least one sample");
    if (drop_partial && p.batch > samples)
      bad_input("a batch of {} can never be filled by {} samples: make it smaller or keep partial batches", p.batch,
                samples);
    if (starts_.empty()) {
      starts_.push_back({p, 0, 0, 0});
      continue;
    }
    const Start& last = starts_.back();
    if (p.step <= last.phase.step) bad_input("batch sizes must be given in the order of their steps");
    const Cursor c = advance(last, p.step - last.phase.step);
    Start start{p, c.epoch, c.batch, c.samples.first};
    if (steps_from(start.position, p.batch) == 0) start = {p, c.epoch + 1, 0, 0};  // the rest is too small for a batch
    starts_.push_back(start);
  }
}

std::uint64_t BatchSequence::steps_from(std::uint64_t position, std::uint64_t batch) const {
  const std::uint64_t left = samples_ - position;
  return drop_partial_ ? left / batch : (left + batch - 1) / batch;
}

Cursor BatchSequence::advance(const Start& from, std::uint64_t steps) const {
  const std::uint64_t size = from.phase.batch, rest = steps_from(from.position, size), whole = steps_from(0, size);
  Cursor c{from.epoch, from.batch + steps, {from.position + steps * size, 0}};
  if (steps >= rest) {
    const std::uint64_t later = steps - rest;
    c.epoch += static_cast<std::uint32_t>(1 + later / whole);
    c.batch = later % whole;
    c.samples.first = c.batch * size;
  }
  c.samples.count = std::min(size, samples_ - c.samples.first);
  return c;
}

Cursor BatchSequence::at(std::uint64_t step) const {
  auto next = std::ranges::upper_bound(starts_, step, {}, [](const Start& s) { return s.phase.step; });
  const Start& start = *(next - 1);
  return advance(start, step - start.phase.step);
}

std::uint64_t BatchSequence::steps_before(std::uint32_t epoch) const {
  if (epoch == 0) return 0;
  // From the last phase that begins in an earlier epoch whole epochs are walked, unless the next phase comes first and
  // skips the rest of one.
  std::size_t last = 0;
  while (last + 1 < starts_.size() && starts_[last + 1].epoch < epoch) ++last;
  const Start& start = starts_[last];
  const std::uint64_t size = start.phase.batch;
  const std::uint64_t walked =
      start.phase.step + steps_from(start.position, size) + (epoch - start.epoch - 1) * steps_from(0, size);
  return last + 1 < starts_.size() ? std::min(walked, starts_[last + 1].phase.step) : walked;
}

std::uint64_t BatchSequence::largest_batch() const {
  std::uint64_t most = 0;
  for (const auto& s : starts_) most = std::max(most, s.phase.batch);
  return std::min(most, samples_);
}

}  // namespace echelon::data
