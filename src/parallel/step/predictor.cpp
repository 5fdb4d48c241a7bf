#include "parallel/step/predictor.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "data/cursor.h"
#include "models/answer_batch.h"

namespace echelon {

namespace {

// A few shards for each core, so that one that is slowed down holds the others up for a short while only.
constexpr std::uint64_t shard_size = 64, shards_a_core = 4;

// The samples, made where the graph reads them, and zeros for those that fill the batch up. What the graph does not
// read goes to `unread`.
void fill_inputs(Executor& e, const data::Dataset& data, const data::IndexRange& samples, data::Sample& unread) {
  const std::vector<data::Field>& fields = data.fields();
  std::array<std::byte*, data::most_fields> sample{};
  std::array<std::size_t, data::most_fields> next{};  // from one sample to the next, in bytes
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const auto it = e.inputs().find(fields[f].name);
    sample[f] = it == e.inputs().end() ? unread.ref()[f] : it->second.data();
    if (it == e.inputs().end()) continue;
    next[f] = fields[f].bytes();
    const std::size_t filled = samples.count * next[f];
    std::memset(it->second.data() + filled, 0, it->second.size() - filled);
  }
  for (std::uint64_t i = 0; i < samples.count; ++i) {
    data.get(samples.first + i, {}, {sample.data(), fields.size()});
    for (std::size_t f = 0; f < fields.size(); ++f) sample[f] += next[f];
  }
}

}  // namespace

Predictor::Predictor(const models::Model& model, const ParameterTable& table, std::span<float> parameters,
                     data::DatasetPtr data, std::string output, Cores& cores)
    : output_(std::move(output)),
      data_(std::move(data)),
      cores_(cores),
      plans_([&model](std::int64_t samples) { return model.prediction(samples); }) {
  if (data_->size() == 0) bad_input("there are no samples to answer");
  if (data_->fields().size() > data::most_fields) bad_input("a sample has at most {} fields", data::most_fields);
  const std::uint64_t most_shards = static_cast<std::uint64_t>(cores.count()) * shards_a_core;
  batch_ = std::min(data_->size(), most_shards * shard_size);
  shards_ = static_cast<int>((batch_ + shard_size - 1) / shard_size);
  for (int core = 0; core < cores.count(); ++core) {
    runners_.emplace_back(plans_, table, parameters, std::span<float>{}, std::make_shared<std::vector<Buffer>>());
    unread_.emplace_back(data_->fields());
  }
  const Graph one = model.prediction(1);
  const auto it = one.outputs().find(output_);
  invariant(it != one.outputs().end(), "the prediction has the output that is asked for");
  width_ = one.type(it->second).elements();
}

void Predictor::run(const std::function<void(int shard, const Answers&)>& each,
                    const std::function<void(std::uint64_t done)>& after) {
  for (std::uint64_t first = 0; first < data_->size(); first += batch_) {
    const data::IndexRange batch{first, std::min(batch_, data_->size() - first)};
    const auto samples_of = [&](int shard) {
      return data::shard_samples(batch, static_cast<std::uint64_t>(shard), static_cast<std::uint64_t>(shards_));
    };
    for (int s = 0; s < shards_; ++s)
      plans_.prepare(models::answer_batch(static_cast<std::int64_t>(samples_of(s).count)));
    cores_.run([&](int core) {
      const ShardRange own = shards_of(core, cores_.count(), shards_);
      for (int s = own.first; s < own.last; ++s) {
        const data::IndexRange samples = samples_of(s);
        if (samples.count == 0) continue;
        Executor& e = runners_[static_cast<std::size_t>(core)].executor(
            models::answer_batch(static_cast<std::int64_t>(samples.count)));
        fill_inputs(e, *data_, samples, unread_[static_cast<std::size_t>(core)]);
        e.run({.shard = static_cast<std::uint32_t>(s)});
        const auto* numbers = reinterpret_cast<const float*>(e.output(output_).data());
        each(s, {samples.first, samples.count, {numbers, samples.count * static_cast<std::size_t>(width_)}});
      }
    });
    after(first + batch.count);
  }
}

}  // namespace echelon
