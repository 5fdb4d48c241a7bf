#include "data/loader.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/error.h"

namespace echelon::data {

namespace {

void check_options(const Dataset& dataset, const LoaderOptions& options) {
  if (options.shards == 0) bad_input("a batch has at least one shard");
  if (options.own && options.own->first + options.own->count > options.shards)
    bad_input("shards {} to {} of {} were asked for", options.own->first, options.own->first + options.own->count,
              options.shards);
  if (options.part >= options.parts) bad_input("part {} of {} was asked for", options.part, options.parts);
  if (options.prefetch < 0 || options.prefetch > 1024)
    bad_input("prefetch lies between 0 and 1024, not {}", options.prefetch);
  if (options.threads < 1 || options.threads > 256) bad_input("a loader has 1 to 256 threads, not {}", options.threads);
  if (dataset.fields().size() > most_fields) bad_input("a sample has at most {} fields", most_fields);
  if (options.partition.fixed && options.batches.size() > 1)
    bad_input(
        "samples stay with their worker (data.partition = \"fixed\") only while all batches are of one size: "
        "leave out [schedule.growth]");
  if (const auto streams = static_cast<std::uint64_t>(dataset.info().streams); streams > 0)
    for (const auto& phase : options.batches)
      if (phase.batch != streams)
        bad_input(
            "the text is read as {} streams, one for each sample of a batch, but the batch is {}: make them equal",
            streams, phase.batch);
}

}  // namespace

std::span<const std::byte> Batch::field(std::uint64_t shard, std::size_t field) const {
  return {memory_[field].data() + (shard - first_own_) * shard_bytes_[field],
          samples_of(shard).count * sample_bytes_[field]};
}

void Batch::copy_from(const Batch& other) {
  cursor_ = other.cursor_;
  part_ = other.part_, global_samples_ = other.global_samples_;
  shards_ = other.shards_, first_own_ = other.first_own_;
  sample_bytes_ = other.sample_bytes_, shard_bytes_ = other.shard_bytes_;
  memory_.resize(other.memory_.size());
  for (std::size_t f = 0; f < memory_.size(); ++f) {
    if (memory_[f].bytes() != other.memory_[f].bytes()) memory_[f] = Buffer(other.memory_[f].bytes());
    std::ranges::copy(other.memory_[f].as<std::byte>(), memory_[f].as<std::byte>().begin());
  }
}

Loader::Loader(DatasetPtr dataset, const LoaderOptions& options)
    : dataset_(std::move(dataset)),
      options_(options),
      own_(options.own.value_or(IndexRange{0, options.shards})),
      batches_(dataset_->size(), options.batches, options.drop_partial),
      ring_(Ahead::slots(options.prefetch < 0 ? 0 : options.prefetch)) {
  check_options(*dataset_, options_);
  if (options_.partition.fixed) {
    const std::vector<std::uint64_t> sizes = part_sizes(batches_, options_.parts);
    firsts_.resize(sizes.size());
    std::exclusive_scan(sizes.begin(), sizes.end(), firsts_.begin(), std::uint64_t{0});
    dataset_ = partitioned(std::move(dataset_), sizes, options_.partition.dirichlet);
  }
  for (Batch& batch : ring_) {
    batch.shards_ = options_.shards;
    batch.first_own_ = own_.first;
    for (const auto& field : dataset_->fields()) {
      batch.sample_bytes_.push_back(field.bytes());
      batch.shard_bytes_.push_back(aligned(largest_shard() * field.bytes()));
      batch.memory_.emplace_back(own_.count * batch.shard_bytes_.back());
    }
  }
  ahead_ = std::make_unique<Ahead>(
      Ahead::Options{
          .name = "loader", .depth = options_.prefetch, .threads = options_.threads, .first = options_.first_step},
      [this](std::uint64_t number, std::size_t slot) {  // without reading ahead, numbers are of parts
        if (options_.prefetch > 0)
          fill(number, options_.part, ring_[slot]);
        else
          fill(number / options_.parts, number % options_.parts, ring_[slot]);
      });
}

std::uint64_t Loader::largest_shard() const {
  const std::uint64_t part = (batches_.largest_batch() + options_.parts - 1) / options_.parts;
  return (part + options_.shards - 1) / options_.shards;
}

const Batch& Loader::at(std::uint64_t step) {
  return options_.prefetch > 0 ? ring_[ahead_->take(step)] : at(step, options_.part);
}

const Batch& Loader::at(std::uint64_t step, std::uint64_t part) {
  if (part == options_.part && options_.prefetch > 0) return at(step);
  invariant(options_.prefetch == 0 && part < options_.parts, "other parts come from a loader that reads nothing ahead");
  return ring_[ahead_->take(step * options_.parts + part)];
}

// The part's samples of a batch, as positions in the epoch.
IndexRange Loader::samples_of(const Cursor& cursor, std::uint64_t part) const {
  IndexRange samples = shard_samples(cursor.samples, part, options_.parts);
  if (!firsts_.empty())  // all batches before this one were full
    samples.first =
        firsts_[part] + cursor.batch * shard_samples({0, batches_.largest_batch()}, part, options_.parts).count;
  return samples;
}

void Loader::fill(std::uint64_t step, std::uint64_t part, Batch& batch) const {
  batch.cursor_ = batches_.at(step);
  batch.part_ = part;
  batch.global_samples_ = batch.cursor_.samples.count;
  batch.cursor_.samples = samples_of(batch.cursor_, part);
  const SampleContext context{options_.seed, batch.cursor_.epoch};
  const std::size_t fields = dataset_->fields().size();
  std::array<std::byte*, most_fields> sample{};
  for (std::uint64_t shard = own_.first; shard < own_.first + own_.count; ++shard) {
    const IndexRange samples = batch.samples_of(shard);
    for (std::size_t f = 0; f < fields; ++f)
      sample[f] = batch.memory_[f].data() + (shard - own_.first) * batch.shard_bytes_[f];
    for (std::uint64_t i = 0; i < samples.count; ++i) {
      dataset_->get(samples.first + i, context, {sample.data(), fields});
      for (std::size_t f = 0; f < fields; ++f) sample[f] += batch.sample_bytes_[f];
    }
  }
}

std::vector<std::uint64_t> Loader::origins(std::uint64_t step) const {
  const Cursor cursor = batches_.at(step);
  const SampleContext context{options_.seed, cursor.epoch};
  std::vector<std::uint64_t> list;
  for (std::uint64_t part = 0; part < options_.parts; ++part) {
    const IndexRange samples = samples_of(cursor, part);
    for (std::uint64_t i = 0; i < samples.count; ++i) list.push_back(dataset_->origin(samples.first + i, context));
  }
  return list;
}

}  // namespace echelon::data
