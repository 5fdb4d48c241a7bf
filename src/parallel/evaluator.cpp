#include "parallel/evaluator.h"

#include <algorithm>

namespace echelon {

namespace {

// Streams of text must keep their batch; other data falls to one shard a core, at most as many as there are samples.
int shards_for(const data::Dataset& data, std::int64_t batch, int cores) {
  const std::int64_t samples = data.info().streams > 0 ? data.info().streams : batch;
  return static_cast<int>(std::clamp<std::int64_t>(samples, 1, cores));
}

data::LoaderOptions options_for(const data::Dataset& data, std::int64_t batch, int shards) {
  data::LoaderOptions o;
  o.batches = {{0, static_cast<std::uint64_t>(data.info().streams > 0 ? data.info().streams : batch)}};
  o.shards = static_cast<std::uint64_t>(shards);
  return o;
}

}  // namespace

Evaluator::Evaluator(const models::Model& model, const ParameterTable& table, std::span<float> parameters,
                     data::DatasetPtr data, std::int64_t batch, Cores& cores)
    : model_(model),
      loader_(data, options_for(*data, batch, shards_for(*data, batch, cores.count()))),
      shards_(static_cast<int>(loader_.shards())),
      cores_(cores),
      terms_per_sample_(model.training(1).back().loss_terms),
      plans_([this](std::int64_t slice) { return model_.evaluation(slice); }),
      carries_(model.evaluation(1), shards_),
      loss_(static_cast<std::size_t>(shards_)),
      correct_(static_cast<std::size_t>(shards_)) {
  for (int core = 0; core < cores.count(); ++core)
    runners_.emplace_back(plans_, table, parameters, std::span<float>{}, std::make_shared<std::vector<Buffer>>());
}

Evaluation Evaluator::run(const Look& each, const std::function<bool()>& keep_going) {
  Evaluation result;
  double loss = 0, correct = 0;
  bool counts_correct = false;
  carries_.reset();
  const std::uint64_t steps = loader_.walk().steps_before(1);
  for (std::uint64_t step = 0; step < steps; ++step) {
    if (keep_going && !keep_going()) break;
    const data::Batch& batch = loader_.at(step);
    for (int s = 0; s < shards_; ++s)
      plans_.prepare(static_cast<std::int64_t>(batch.slice(static_cast<std::uint64_t>(s)).count));
    cores_.run([&](int core) {
      const ShardRange range = shards_of(core, cores_.count(), shards_);
      for (int s = range.first; s < range.last; ++s) {
        const auto shard = static_cast<std::size_t>(s);
        loss_[shard] = correct_[shard] = 0;
        if (batch.slice(shard).count == 0) continue;
        const StepContext context{.step = static_cast<std::uint32_t>(step), .shard = static_cast<std::uint32_t>(s)};
        Executor& e = runners_[static_cast<std::size_t>(core)].run(batch, loader_.dataset().fields(), context,
                                                                   carries_.empty() ? nullptr : &carries_);
        loss_[shard] = *reinterpret_cast<const float*>(e.output("loss").data());
        if (e.has_output("correct")) correct_[shard] = *reinterpret_cast<const float*>(e.output("correct").data());
      }
    });
    for (int s = 0; s < shards_; ++s) {
      const auto shard = static_cast<std::size_t>(s);
      loss += loss_[shard], correct += correct_[shard];
      if (batch.slice(shard).count == 0) continue;
      const int core = [&] {
        for (int c = 0;; ++c)
          if (s < shards_of(c, cores_.count(), shards_).last) return c;
      }();
      Executor& e =
          runners_[static_cast<std::size_t>(core)].executor(static_cast<std::int64_t>(batch.slice(shard).count));
      counts_correct = e.has_output("correct");
      if (each) each(batch, s, e);  // one shard a core: its outputs are still there
    }
    result.samples += static_cast<std::int64_t>(batch.samples());
  }
  result.terms = result.samples * terms_per_sample_;
  const double terms = static_cast<double>(std::max<std::int64_t>(result.terms, 1));
  result.loss = loss / terms;
  if (counts_correct) result.accuracy = correct / terms;
  return result;
}

}  // namespace echelon
