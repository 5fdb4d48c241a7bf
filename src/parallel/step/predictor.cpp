#include "parallel/step/predictor.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "models/answer_batch.h"

namespace echelon {

namespace {

constexpr std::uint64_t shard_size = 64, shards_a_core = 4;

// A few shards for each core, so that one that is slowed down holds the others up for a short while only. Samples are
// made by as many threads as there are cores: decoding a picture costs more than looking at it.
data::LoaderOptions predicting(const data::Dataset& data, int cores) {
  data::LoaderOptions o;
  const auto shards = static_cast<std::uint64_t>(cores) * shards_a_core;
  const std::uint64_t batch = std::min<std::uint64_t>(data.size(), shards * shard_size);
  o.batches = {{0, batch}};
  o.shards = std::clamp<std::uint64_t>((batch + shard_size - 1) / shard_size, 1, shards);
  o.threads = cores;
  return o;
}

// The shard's samples, and zeros for those that fill the batch up.
void fill_inputs(Executor& e, const data::Batch& batch, const std::vector<data::Field>& fields, std::uint64_t shard) {
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const auto it = e.inputs().find(fields[f].name);
    if (it == e.inputs().end()) continue;
    const std::size_t bytes = batch.samples_of(shard).count * fields[f].bytes();
    std::memcpy(it->second.data(), batch.field(shard, f).data(), bytes);
    std::memset(it->second.data() + bytes, 0, it->second.size() - bytes);
  }
}

}  // namespace

Predictor::Predictor(const models::Model& model, const ParameterTable& table, std::span<float> parameters,
                     data::DatasetPtr data, std::string output, Cores& cores)
    : output_(std::move(output)),
      loader_(data, predicting(*data, cores.count())),
      cores_(cores),
      plans_([&model](std::int64_t samples) { return model.prediction(samples); }) {
  for (int core = 0; core < cores.count(); ++core)
    runners_.emplace_back(plans_, table, parameters, std::span<float>{}, std::make_shared<std::vector<Buffer>>());
  const Graph one = model.prediction(1);
  const auto it = one.outputs().find(output_);
  invariant(it != one.outputs().end(), "the prediction has the output that is asked for");
  width_ = one.type(it->second).elements();
}

void Predictor::run(const std::function<void(int shard, const Answers&)>& each,
                    const std::function<void(std::uint64_t done)>& after) {
  const std::uint64_t steps = loader_.batches().steps_before(1);
  const int shards = this->shards();
  std::uint64_t done = 0;
  for (std::uint64_t step = 0; step < steps; ++step) {
    const data::Batch& batch = loader_.at(step);
    for (int s = 0; s < shards; ++s)
      plans_.prepare(
          models::answer_batch(static_cast<std::int64_t>(batch.samples_of(static_cast<std::uint64_t>(s)).count)));
    cores_.run([&](int core) {
      const ShardRange own = shards_of(core, cores_.count(), shards);
      for (int s = own.first; s < own.last; ++s) {
        const data::IndexRange samples = batch.samples_of(static_cast<std::uint64_t>(s));
        if (samples.count == 0) continue;
        Executor& e = runners_[static_cast<std::size_t>(core)].executor(
            models::answer_batch(static_cast<std::int64_t>(samples.count)));
        fill_inputs(e, batch, loader_.dataset().fields(), static_cast<std::uint64_t>(s));
        e.run({.shard = static_cast<std::uint32_t>(s)});
        const auto* numbers = reinterpret_cast<const float*>(e.output(output_).data());
        each(s, {samples.first, samples.count, {numbers, samples.count * static_cast<std::size_t>(width_)}});
      }
    });
    done += batch.samples();
    after(done);
  }
}

}  // namespace echelon
