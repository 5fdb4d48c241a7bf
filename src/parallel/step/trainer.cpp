#include "parallel/step/trainer.h"

#include <algorithm>
#include <cmath>

#include "nn/initialise.h"
#include "parallel/step/trainer_phase.h"

namespace echelon {

namespace {

models::Phase phase_for(const models::Model& model, std::int64_t slice, std::size_t index) {
  return std::move(model.training(slice)[index]);
}

std::vector<TrainedSpan> trained_segments(const Graph& graph, const ParameterTable& table) {
  std::vector<TrainedSpan> segments;
  for (const auto& e : table.entries()) {  // in the order of offsets
    for (std::size_t i = 0; i < graph.parameters().size(); ++i) {
      const Parameter& p = graph.parameters()[i];
      if (p.name != e.parameter.name || !graph.contributions()[i]) continue;
      segments.push_back({.offset = e.offset,
                          .size = e.size,
                          .decays = p.decays,
                          .statistic = p.kind == Parameter::Kind::statistic,
                          .rate = p.rate});
    }
  }
  return segments;
}

}  // namespace

Trainer::Trainer(const models::Model& model, const std::function<Optim()>& make_optim, std::vector<data::Field> fields,
                 int shards, std::uint64_t seed, Team& team, std::int64_t largest_slice)
    : model_(model), fields_(std::move(fields)), shards_(shards), seed_(seed), team_(team), cores_(team.cores()) {
  const auto graphs = model.training(1);
  for (const auto& phase : graphs) table_.include(phase.graph);
  table_.include(model.evaluation(1));
  auto floats = [&](const std::string& name, std::size_t count) {
    return std::span(reinterpret_cast<float*>(team.memory(name, count * sizeof(float)).data()), count);
  };
  auto doubles = [&](const std::string& name, int count) {
    const auto n = static_cast<std::size_t>(count);
    return std::span(reinterpret_cast<double*>(team.memory(name, n * sizeof(double)).data()), n);
  };
  parameters_ = floats("parameters", table_.floats());
  if (team.number(0) == 0) nn::initialise(table_, seed, parameters_);
  wants_stop_ = doubles("wants to stop", team.world().size());
  times_.waiting_for.resize(static_cast<std::size_t>(team.world().size()));

  const World& world = team.world();
  std::vector<std::shared_ptr<std::vector<Buffer>>> arenas;
  for (int member = 0; member < team.size(); ++member) {
    const int rank = team.is_everyone() ? member / cores_.count() : world.rank();
    const ShardRange r = shards_of(rank, world.size(), member % cores_.count(), cores_.count(), shards);
    reducers_.push_back(nullptr);
    if (r.first == r.last) continue;
    const std::size_t bytes = ShardReducer::memory_bytes(shards, r.first, r.last, table_.floats());
    const auto memory = team.memory(fmt::format("contributions {}", member), bytes);
    reducers_.back() = std::make_unique<ShardReducer>(shards, r.first, r.last, table_.floats(), memory);
    for (const PartialSum& p : reducers_.back()->partial_sums()) partials_.push_back(p);
    if (total_.empty()) total_ = reducers_.back()->total();  // over the leftmost partial sum
  }
  busy_cores_ = static_cast<int>(std::ranges::count_if(reducers_, [](const auto& f) { return f != nullptr; }));
  if (!team.is_everyone()) {
    rank_sum_ = std::make_unique<RankSum>(team.group(), shards, partials_, table_.floats());
    total_ = rank_sum_->total();
    partials_ = {{0, shards, total_.data()}};
  }
  summed_ = {{0, shards, total_.data()}};

  for (int core = 0; core < cores_.count(); ++core) arenas.push_back(std::make_shared<std::vector<Buffer>>());
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    const std::string prefix = graphs[i].name + " ";
    auto memory = [&](const std::string& name, std::size_t bytes) { return team.memory(prefix + name, bytes); };
    auto make = [this, i](std::int64_t slice) { return phase_for(model_, slice, i).graph; };
    phases_.push_back(std::make_unique<TrainerPhase>(TrainerPhase{
        .name = graphs[i].name,
        .loss_terms = graphs[i].loss_terms,
        .plans = SlicePlans(make),
        .carries = CarryStore(make(largest_slice), shards, [&](std::size_t b) { return memory("carries", b); }),
        .segments = trained_segments(graphs[i].graph, table_),
        .loss = doubles(prefix + "loss", shards),
        .correct = doubles(prefix + "correct", shards)}));
    TrainerPhase& phase = *phases_.back();
    Optim optim = make_optim();
    phase.update =
        std::make_unique<Update>(std::move(optim.rule), optim.clip, phase.segments, parameters_, total_, memory);
    for (int core = 0; core < cores_.count(); ++core) {
      ShardReducer* folder = reducers_[static_cast<std::size_t>(team.number(core))].get();
      phase.runners.emplace_back(phase.plans, table_, parameters_, folder ? folder->contribution() : std::span<float>{},
                                 arenas[static_cast<std::size_t>(core)]);
    }
  }
  broadcast_state();
}

Trainer::~Trainer() = default;

ShardRange Trainer::shards_of_core(int core) const {
  return shards_of(team_.world().rank(), team_.world().size(), core, cores_.count(), shards_);
}

StepResult Trainer::step(std::uint64_t step, double lr, const data::Batch& batch, bool wants_to_stop) {
  const auto samples = static_cast<std::int64_t>(batch.samples());
  wants_stop_[static_cast<std::size_t>(team_.world().rank())] = wants_to_stop;
  for (auto& phase : phases_) {
    prepare(*phase, batch);
    phase->update->begin({.number = static_cast<std::int64_t>(step) + 1, .lr = lr, .grad_scale = 1});
  }
  const StepContext context{.seed = seed_, .step = static_cast<std::uint32_t>(step)};
  StepResult result;
  cores_.run([&](int core) {
    for (auto& phase : phases_) {
      run_phase(*phase, core, batch, context, static_cast<double>(samples));
      if (!phase->finite) return;
      if (core == 0) result.stop = std::ranges::any_of(wants_stop_, [](double wish) { return wish != 0; });
      update(*phase, core, partials_);
    }
  });
  for (auto& phase : phases_)
    if (!phase->finite) explain_not_finite(*phase, batch, context);

  ++steps_;
  const TrainerPhase& last = *phases_.back();
  const bool stop = result.stop;
  result = result_of(last, samples);
  result.stop = stop;
  result.gradient_norm = last.update->gradient_norm();
  return result;
}

StepResult Trainer::result_of(const TrainerPhase& phase, std::int64_t samples) const {
  StepResult result{.correct = phase.total_correct, .samples = samples, .terms = samples * phase.loss_terms};
  if (samples > 0) result.loss = phase.total_loss / static_cast<double>(result.terms);
  return result;
}

// What must be there before the cores start: compiled plans, the order of things.
void Trainer::prepare(TrainerPhase& phase, const data::Batch& batch) {
  phase.finite = true;
  const ShardRange own = own_shards();
  for (int s = own.first; s < own.last; ++s)
    phase.plans.prepare(static_cast<std::int64_t>(batch.slice(static_cast<std::uint64_t>(s)).count));
  if (batch.cursor().batch == 0) phase.carries.reset(own.first, own.last);
  if (goes_node_by_node()) prepare_ranks(phase, batch);
}

// Forward and backward of a core's own shards.
void Trainer::compute_phase(TrainerPhase& phase, int core, const data::Batch& batch, StepContext context,
                            double mean_over) {
  World& world = team_.world();
  const double begin = world.now();
  context.loss_scale = static_cast<float>(1.0 / (mean_over * static_cast<double>(phase.loss_terms)));
  if (ShardReducer* folder = reducers_[static_cast<std::size_t>(team_.number(core))].get()) {
    folder->start_step();
    const ShardRange range = shards_of_core(core);
    for (int s = range.first; s < range.last; ++s) {
      const auto count = batch.slice(static_cast<std::uint64_t>(s)).count;
      context.shard = static_cast<std::uint32_t>(s);
      context.share = static_cast<float>(static_cast<double>(count) / static_cast<double>(batch.samples()));
      if (keep_going_ && core == 0 && s > range.first && !handed_in_ && !keep_going_()) handed_in_ = true;
      const bool left_out = handed_in_ && s > range.first;
      if (!left_out) samples_done_ += static_cast<std::int64_t>(count);
      if (core == 0) slow_from_ = world.now();
      run_shard(phase, core, batch, context, s + 1 == range.last, left_out);
      if (core == 0 && !left_out) simulate_slowness();
    }
  }
  if (core != 0) return;
  times_.compute += phase.compute_seconds = world.now() - begin;
}

void Trainer::run_phase(TrainerPhase& phase, int core, const data::Batch& batch, StepContext context,
                        double mean_over) {
  World& world = team_.world();
  if (core == 0 && rank_sum_) {
    if (bucket_missing_.size() < phase.buckets.size())
      bucket_missing_ = std::vector<std::atomic<int>>(phase.buckets.size());
    for (auto& missing : bucket_missing_) missing = busy_cores_;
    rank_sum_->begin(phase.buckets);
  }
  if (rank_sum_) cores_.barrier();
  compute_phase(phase, core, batch, context, mean_over);
  if (core == 0 && world.size() > 1) world.set_status("the exchange of gradients");
  const double computed = world.now();
  team_.barrier(core, "the end of backward");
  const double met = world.now();

  if (core == 0) {
    if (rank_sum_) share_losses(phase);
    sum_losses(phase);
    if (rank_sum_) rank_sum_->finish();
    if (watch_.did) {
      watch_.did("wait for the other cores and ranks", computed, met);
      if (rank_sum_) watch_.did("sum over ranks", met, world.now());
    }
  }
  cores_.barrier();
}

// Core 0: as if what was computed since the last time had taken so many times as long.
void Trainer::simulate_slowness() {
  if (slowness_ <= 1) return;
  team_.world().sleep((slowness_ - 1) * (team_.world().now() - slow_from_));
  slow_from_ = team_.world().now();
}

void Trainer::sum_losses(TrainerPhase& phase) {
  phase.total_loss = phase.total_correct = 0;
  for (double l : phase.loss) phase.total_loss += l;
  for (double n : phase.correct) phase.total_correct += n;
  phase.finite = std::isfinite(phase.total_loss);
}

void Trainer::run_shard(TrainerPhase& phase, int core, const data::Batch& batch, StepContext context, bool last,
                        bool left_out) {
  ShardReducer& folder = *reducers_[static_cast<std::size_t>(team_.number(core))];
  const auto shard = static_cast<std::size_t>(context.shard);
  const auto slice = static_cast<std::int64_t>(batch.slice(shard).count);
  phase.loss[shard] = phase.correct[shard] = 0;
  last = last && (rank_sum_ || bucket_ready_);  // then buckets go out one by one, and no fold is left to do
  if (slice == 0 || left_out) {                 // empty: more shards than samples in an epoch's last batch
    std::ranges::fill(folder.contribution(), 0.0f);
    if (last)
      for (std::size_t b = 0; b < phase.buckets.size(); ++b) complete(phase, core, b);
  } else {
    const auto node_by_node = [&](Executor& e) {
      for (std::size_t node = 0; node < e.plan().graph.nodes().size(); ++node) {
        if (before_reading_) {
          const double asked = team_.world().now();
          for (const Range& r : phase.node_actions.at(slice)[node].reads) before_reading_(r);
          const double waited = team_.world().now() - asked;  // which is not computing
          if (core == 0) slow_from_ += waited, waited_for_weights_ += waited;
        }
        const bool taken = offer_factors(phase, e, batch, shard, node);  // somebody else does the product
        const double begin = watch_.saw ? watch_.now() : 0;
        if (!taken && e.run_node(context, node) && watch_.saw)
          watch_.saw(core, e.plan().graph.nodes()[node], begin, watch_.now());
        after_node(phase, core, slice, node, last, taken);
      }
    };
    std::function<void(Executor&)> execute;
    if (watch_.saw || goes_node_by_node()) execute = std::ref(node_by_node);  // a copy would be on the heap
    CarryStore* carries = phase.carries.empty() ? nullptr : &phase.carries;
    Executor& e = phase.runners[static_cast<std::size_t>(core)].run(batch, fields_, context, carries, execute);
    phase.loss[shard] = *reinterpret_cast<const float*>(e.output("loss").data());
    if (e.has_output("correct")) phase.correct[shard] = *reinterpret_cast<const float*>(e.output("correct").data());
  }
  if (last)
    folder.end_shard();
  else
    folder.fold();
}

void Trainer::update(TrainerPhase& phase, int core, std::span<const PartialSum> sums) {
  const double begin = team_.world().now();
  // Each block is summed over the shards and used while it is in the nearest cache.
  Update& update = *phase.update;
  const Update::Range part =
      update.part(static_cast<std::size_t>(team_.number(core)), static_cast<std::size_t>(team_.size()));
  for (int p = 0; p < update.phases(); ++p) {
    for (std::size_t b = part.first; b < part.last; ++b) {
      const Update::Block& block = update.blocks()[b];
      if (p == 0) sum_over_shards(shards_, sums, block.offset, block.offset + block.size, total_.data());
      update.run(p, {b, b + 1});
    }
    if (core == 0 && p + 1 == update.phases()) {
      const double end = team_.world().now();
      times_.exchange += end - begin;
      if (watch_.did) watch_.did("update", begin, end);
    }
    team_.barrier(core, "the end of the update");
    if (core == 0) update.fold(p);
    if (p + 1 < update.phases()) team_.barrier(core, "a norm of the update");
  }
}

// Runs the step again, node by node, to name the place where numbers stopped being numbers. That is for the rank that
// has the shard; the others wait for its word.
void Trainer::explain_not_finite(TrainerPhase& phase, const data::Batch& batch, StepContext context) {
  const auto bad = std::ranges::find_if(phase.loss, [](double l) { return !std::isfinite(l); });
  const int shard = static_cast<int>(bad - phase.loss.begin());
  if (const ShardRange own = own_shards(); shard < own.first || shard >= own.last) wait_for_the_end_of(rank_of(shard));
  for (const auto& e : table_.entries())
    for (std::size_t i = 0; i < e.size; ++i)
      if (!std::isfinite(parameters()[e.offset + i]))
        throw NotFinite(
            fmt::format("step {}: the loss is not a number, because element {} of parameter '{}' is {}: an earlier "
                        "update overflowed. "
                        "Try a smaller optim.lr, a warm-up (schedule.warmup_steps) or optim.clip_norm",
                        context.step, i, e.parameter.name, parameters()[e.offset + i]));
  context.shard = static_cast<std::uint32_t>(shard);
  int core = 0;
  while (shard >= shards_of_core(core).last) ++core;
  Executor& e = phase.runners[static_cast<std::size_t>(core)].load(batch, fields_, shard, nullptr);
  if (const int node = e.run_until_not_finite(context); node >= 0) {
    const Node& n = e.plan().graph.nodes()[static_cast<std::size_t>(node)];
    throw NotFinite(fmt::format(
        "step {}: the loss is not a number. The first operation with a result that is not finite was {} in layer '{}' "
        "(shard {}). Try a smaller optim.lr, a warm-up (schedule.warmup_steps) or optim.clip_norm, and look at the "
        "data",
        context.step, n.op->name(), n.layer, shard));
  }
  throw NotFinite(fmt::format("step {}: the loss is not a number", context.step));
}

std::vector<StateSpan> Trainer::state() {
  std::vector<StateSpan> all;
  for (auto& phase : phases_) {
    const std::string prefix = phases_.size() > 1 ? phase->name + "." : "";
    for (const Update::Slot& slot : phase->update->slots()) all.push_back(as_state(prefix + slot.name, slot.values));
    if (!phase->carries.empty()) all.push_back(as_state(prefix + "carries", phase->carries.all()));
  }
  return all;
}

double Trainer::flops_per_sample() const {
  double flops = 0;
  for (const auto& phase : phases_) {
    phase->plans.prepare(8);  // per-sample work does not depend on the slice; eight fill a batch8 vector
    flops += phase->plans.at(8).flops / 8;
  }
  return flops;
}

std::size_t Trainer::planned_bytes() const {
  std::size_t sum = team_.bytes() + (rank_sum_ ? table_.floats() * sizeof(float) : 0);
  for (const auto& runner : phases_.front()->runners) sum += runner.arena_bytes();
  return sum;
}

std::vector<Trainer::Profile> Trainer::profile(const data::Batch& batch, int repeats,
                                               const std::function<double()>& now) {
  std::vector<Profile> profiles;
  for (auto& phase : phases_) {
    phase->plans.prepare(static_cast<std::int64_t>(batch.slice(0).count));
    Executor& e = phase->runners[0].load(batch, fields_, 0, nullptr);
    Profile p{phase->name, &e.plan().graph, std::vector<double>(e.plan().graph.nodes().size())};
    const StepContext context{.seed = seed_, .loss_scale = 1.0f / static_cast<float>(batch.samples())};
    for (int i = -1; i < repeats; ++i) {  // once to warm up
      phase->runners[0].load(batch, fields_, 0, nullptr);
      e.run_watched(context, now, [&](const Node& node, double begin, double end) {
        if (i >= 0) p.seconds[static_cast<std::size_t>(&node - p.graph->nodes().data())] += (end - begin) / repeats;
      });
    }
    profiles.push_back(std::move(p));
  }
  return profiles;
}

}  // namespace echelon
