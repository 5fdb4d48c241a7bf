#include "parallel/step/evaluator.h"

#include <algorithm>
#include <atomic>

#include "base/error.h"

namespace echelon {

namespace {

// Streams of text must keep their batch. A batch falls to shards of 32 samples, at least two: a function of the data
// alone, so that the sums do not depend on how many cores and ranks there are.
data::LoaderOptions options_for(const data::Dataset& data, std::int64_t batch) {
  data::LoaderOptions o;
  const std::int64_t samples = data.info().streams > 0 ? data.info().streams : batch;
  o.batches = {{0, static_cast<std::uint64_t>(samples)}};
  o.shards = static_cast<std::uint64_t>(std::max<std::int64_t>(std::min<std::int64_t>(2, samples), samples / 32));
  return o;
}

data::LoaderOptions own_part(data::LoaderOptions o, const World& world) {
  const ShardRange own = shards_of(world.rank(), world.size(), static_cast<int>(o.shards));
  o.own = data::IndexRange{static_cast<std::uint64_t>(own.first), static_cast<std::uint64_t>(own.last - own.first)};
  if (!world.place().threads) o.prefetch = 0;
  return o;
}

}  // namespace

Evaluator::Evaluator(const models::Model& model, const ParameterTable& table, std::span<float> parameters,
                     data::DatasetPtr data, std::int64_t batch, Team& team, std::vector<Metric> metrics)
    : model_(model),
      loader_(data, own_part(options_for(*data, batch), team.world())),
      shards_(static_cast<int>(loader_.shards())),
      team_(team),
      tally_(std::move(metrics), model, data->info()),
      target_field_(
          static_cast<std::size_t>(std::max(0, data::find_field(data->fields(), model.inputs().target.name)))),
      predicted_(model.task() == models::Task::regress ? "output" : "logits"),
      terms_per_sample_(model.training(1).back().loss_terms),
      plans_([this](std::int64_t samples) { return model_.evaluation(samples); }),
      carries_(model.evaluation(static_cast<std::int64_t>(loader_.largest_shard())), shards_) {
  for (int core = 0; core < team.cores().count(); ++core)
    runners_.emplace_back(plans_, table, parameters, std::span<float>{}, std::make_shared<std::vector<Buffer>>());
}

Evaluation Evaluator::run(const Look& each, const std::function<bool()>& keep_going) {
  const World& world = team_.world();
  invariant(world.size() == 1 || (!each && !keep_going), "only one rank alone can watch an evaluation or stop it");
  const int ranks = world.size();
  const ShardRange own = shards_of(world.rank(), ranks, shards_);
  const auto own_count = static_cast<std::size_t>(own.count());
  const std::uint64_t steps = loader_.batches().steps_before(1);
  carries_.reset(0, shards_);

  // Of every shard of every batch, those of rank 0 first.
  std::vector<std::size_t> counts;
  for (Rank r = 0; r < ranks; ++r)
    counts.push_back(static_cast<std::size_t>(shards_of(r, ranks, shards_).count()) * steps);
  std::size_t mine = 0;
  for (Rank r = 0; r < world.rank(); ++r) mine += counts[static_cast<std::size_t>(r)];
  std::vector<ShardLoss> losses(static_cast<std::size_t>(shards_) * steps);

  Tallies tallies = start_tallies();
  Evaluation result;
  for (std::uint64_t step = 0; step < steps; ++step) {
    if (keep_going && !keep_going()) break;
    const data::Batch& batch = loader_.at(step);
    run_batch(batch, step, std::span(losses).subspan(mine + own_count * step, own_count), tallies, each);
    result.samples += static_cast<std::int64_t>(batch.samples());
  }
  team_.all_gather_structs(std::span(losses), counts);
  gather_tallies(tallies);

  double loss = 0, correct = 0;  // in the order of batches and shards, whoever ran them
  std::vector<double> sums;      // likewise
  for (std::uint64_t step = 0; step < steps; ++step) {
    std::size_t at = 0;
    for (Rank r = 0; r < ranks; ++r) {
      const std::size_t count = counts[static_cast<std::size_t>(r)] / steps;
      for (std::size_t s = 0; s < count; ++s) {
        const ShardLoss& of_shard = losses[at + count * step + s];
        loss += of_shard.loss, correct += of_shard.correct;
        const auto from = tallies.sums.begin() + static_cast<std::ptrdiff_t>((at + count * step + s) * tally_.sums());
        sums.insert(sums.end(), from, from + static_cast<std::ptrdiff_t>(tally_.sums()));
      }
      at += counts[static_cast<std::size_t>(r)];
    }
  }
  result.terms = result.samples * terms_per_sample_;
  const double terms = static_cast<double>(std::max<std::int64_t>(result.terms, 1));
  result.loss = loss / terms;
  if (model_.evaluation(1).outputs().contains("correct")) result.accuracy = correct / terms;
  result.metrics = tally_.values(sums, tallies.counts, tallies.scores,
                                 {.loss = result.loss, .accuracy = result.accuracy, .terms = result.terms});
  for (const auto& [name, value] : result.metrics)
    if (name == "accuracy") result.accuracy = value;
  return result;
}

std::uint64_t Evaluator::samples_of(Rank rank, std::uint64_t step) const {
  const ShardRange own = shards_of(rank, team_.world().size(), shards_);
  std::uint64_t samples = 0;
  for (int s = own.first; s < own.last; ++s)
    samples += data::shard_samples(loader_.batches().at(step).samples, static_cast<std::uint64_t>(s),
                                   static_cast<std::uint64_t>(shards_))
                   .count;
  return samples;
}

Evaluator::Tallies Evaluator::start_tallies() {
  Tallies t;
  const Rank ranks = team_.world().size(), rank = team_.world().rank();
  const std::uint64_t steps = loader_.batches().steps_before(1);
  std::size_t sums = 0, scores = 0;
  for (Rank r = 0; r < ranks; ++r) {
    std::size_t samples = 0;
    if (tally_.scores() > 0)
      for (std::uint64_t step = 0; step < steps; ++step) samples += samples_of(r, step);
    t.sums_of.push_back(static_cast<std::size_t>(shards_of(r, ranks, shards_).count()) * steps * tally_.sums());
    t.scores_of.push_back(samples * tally_.scores());
    if (r == rank) t.next_sum = sums, t.next_score = scores;
    sums += t.sums_of.back(), scores += t.scores_of.back();
  }
  t.sums.assign(sums, 0.0);
  t.scores.assign(scores, 0.0);
  t.by_core.assign(static_cast<std::size_t>(team_.cores().count()), std::vector<std::int64_t>(tally_.counts()));
  return t;
}

void Evaluator::gather_tallies(Tallies& t) {
  const auto ranks = static_cast<std::size_t>(team_.world().size());
  t.counts.assign(tally_.counts(), 0);
  for (const auto& core : t.by_core)
    for (std::size_t i = 0; i < core.size(); ++i) t.counts[i] += core[i];
  if (ranks == 1) return;
  if (tally_.sums() > 0) team_.all_gather_structs(std::span(t.sums), t.sums_of);
  if (tally_.scores() > 0) team_.all_gather_structs(std::span(t.scores), t.scores_of);
  if (t.counts.empty()) return;
  std::vector<std::int64_t> all(t.counts.size() * ranks);
  std::ranges::copy(t.counts, all.begin() + team_.world().rank() * std::ssize(t.counts));
  team_.all_gather_structs(std::span(all), std::vector<std::size_t>(ranks, t.counts.size()));
  std::ranges::fill(t.counts, 0);
  for (std::size_t i = 0; i < all.size(); ++i) t.counts[i % t.counts.size()] += all[i];
}

// This rank's shards of one batch, as many at a time as there are cores, so that each can be looked at in turn.
void Evaluator::run_batch(const data::Batch& batch, std::uint64_t step, std::span<ShardLoss> losses, Tallies& tallies,
                          const Look& each) {
  Cores& cores = team_.cores();
  const ShardRange own = shards_of(team_.world().rank(), team_.world().size(), shards_);
  const std::uint64_t first_sample =
      own.count() > 0 ? batch.samples_of(static_cast<std::uint64_t>(own.first)).first : 0;
  for (int s = own.first; s < own.last; ++s)
    plans_.prepare(static_cast<std::int64_t>(batch.samples_of(static_cast<std::uint64_t>(s)).count));
  auto run_shard = [&](int core, int s) {
    if (batch.samples_of(static_cast<std::uint64_t>(s)).count == 0) return;
    const StepContext context{.step = static_cast<std::uint32_t>(step), .shard = static_cast<std::uint32_t>(s)};
    Executor& e = runners_[static_cast<std::size_t>(core)].run(batch, loader_.dataset().fields(), context,
                                                               carries_.empty() ? nullptr : &carries_);
    ShardLoss& loss = losses[static_cast<std::size_t>(s - own.first)];
    loss.loss = *reinterpret_cast<const float*>(e.output("loss").data());
    if (e.has_output("correct")) loss.correct = *reinterpret_cast<const float*>(e.output("correct").data());
    if (!tally_.reads_predictions()) return;
    const auto shard = static_cast<std::uint64_t>(s);
    const std::uint64_t before = batch.samples_of(shard).first - first_sample;
    const auto predictions = e.output(predicted_);
    tally_.add(
        {reinterpret_cast<const float*>(predictions.data()), predictions.size() / sizeof(float)},
        batch.field(shard, target_field_),
        std::span(tallies.sums)
            .subspan(tallies.next_sum + static_cast<std::size_t>(s - own.first) * tally_.sums(), tally_.sums()),
        tallies.by_core[static_cast<std::size_t>(core)],
        std::span(tallies.scores)
            .subspan(tallies.next_score + before * tally_.scores(), batch.samples_of(shard).count * tally_.scores()));
  };
  const auto advance = [&] {
    tallies.next_sum += static_cast<std::size_t>(own.count()) * tally_.sums();
    if (tally_.scores() > 0) tallies.next_score += samples_of(team_.world().rank(), step) * tally_.scores();
  };
  if (!each) {
    std::atomic<int> next = own.first;  // a core takes a shard when it is done with the last one
    cores.run([&](int core) {
      for (int s; (s = next++) < own.last;) run_shard(core, s);
    });
    advance();
    return;
  }
  for (int first = own.first; first < own.last; first += cores.count()) {
    const int last = std::min(own.last, first + cores.count());
    cores.run([&](int core) {
      if (first + core < last) run_shard(core, first + core);
    });
    for (int s = first; s < last; ++s)
      if (const auto count = static_cast<std::int64_t>(batch.samples_of(static_cast<std::uint64_t>(s)).count);
          count > 0)
        each(batch, s, runners_[static_cast<std::size_t>(s - first)].executor(count));
  }
  advance();
}

}  // namespace echelon
