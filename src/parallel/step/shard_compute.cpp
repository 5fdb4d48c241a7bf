#include "parallel/step/shard_compute.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nn/initialise.h"
#include "parallel/step/racing.h"

namespace echelon {

namespace {

std::vector<TrainedSpan> trained_segments(const Graph& graph, const ParameterTable& table) {
  std::vector<TrainedSpan> segments;
  for (const auto& e : table.entries()) {  // in the order of offsets
    for (std::size_t i = 0; i < graph.parameters().size(); ++i) {
      const Parameter& p = graph.parameters()[i];
      if (p.name != e.parameter.name || !graph.contributions()[i]) continue;
      segments.push_back({.offset = e.offset,
                          .size = e.size,
                          .rows = p.shape.rank() > 1 ? static_cast<std::size_t>(p.shape[0]) : 1,
                          .decays = p.decays,
                          .statistic = p.kind == Parameter::Kind::statistic,
                          .rate = p.rate,
                          .lr_scale = p.lr_scale});
    }
  }
  return segments;
}

template <typename T>
std::span<T> array_in(const Update::Memory& memory, const std::string& name, std::size_t count) {
  return {reinterpret_cast<T*>(memory(name, count * sizeof(T)).data()), count};
}

}  // namespace

ShardCompute::ShardCompute(const ComputeSettings& settings, World& world, Cores& cores, ShardSplit split,
                           const Update::Memory& memory)
    : settings_(settings), world_(world), cores_(cores), split_(split), slow_down_(world) {
  const auto phases = settings_.model->training(1);
  for (const auto& phase : phases) table_.include(phase.graph);
  table_.include(settings_.model->evaluation(1));
  parameters_ = array_in<float>(memory, "parameters", table_.floats());
  if (split.rank == 0 || !split.share_memory) {
    nn::initialise(table_, settings_.seed, parameters_);
    if (settings_.start) settings_.start(table_, parameters_);
  }

  const int first = split.share_memory ? 0 : split.rank, last = split.share_memory ? split.ranks : split.rank + 1;
  for (int rank = first; rank < last; ++rank)
    for (int core = 0; core < cores.count(); ++core) {
      const ShardRange r = shards_of(rank, split.ranks, core, cores.count(), settings_.shards);
      reducers_.push_back(nullptr);
      if (r.count() == 0) continue;
      const std::size_t bytes = ShardReducer::memory_bytes(settings_.shards, r.first, r.last, table_.floats());
      const auto place = memory(fmt::format("contributions {}", reducers_.size() - 1), bytes);
      reducers_.back() = std::make_unique<ShardReducer>(settings_.shards, r.first, r.last, table_.floats(), place);
      for (const PartialSum& p : reducers_.back()->partial_sums()) partials_.push_back(p);
      if (place_for_sum_.empty()) place_for_sum_ = reducers_.back()->total();
      if (rank == split.rank) ++busy_cores_;
    }
  std::vector<ShardRange> dealt;
  std::vector<ShardReducer*> own;
  for (int core = 0; core < cores.count(); ++core) {
    arenas_.push_back(std::make_shared<std::vector<Buffer>>());
    if (settings_.race) raced_.emplace_back(parameters_.size_bytes());
    dealt.push_back(shards_of_core(core));
    own.push_back(reducer_of(core));
  }
  if (busy_cores_ > 1) shared_ = std::make_unique<SharedReducer>(settings_.shards, dealt, own, table_.floats());
  for (std::size_t i = 0; i < phases.size(); ++i) add_phase(phases[i], i, memory);
}

void ShardCompute::add_phase(const models::Phase& of_model, std::size_t index, const Update::Memory& memory) {
  const std::string prefix = of_model.name + " ";
  auto make = [model = settings_.model, index](std::int64_t samples) {
    return std::move(model->training(samples)[index].graph);
  };
  phases_.push_back(std::make_unique<ComputePhase>(ComputePhase{
      .name = of_model.name,
      .loss_terms = of_model.loss_terms,
      .plans = MicroBatchPlans(make),
      .carries = CarryStore(make(settings_.largest_shard), settings_.shards,
                            [&](std::size_t bytes) { return memory(prefix + "carries", bytes); }),
      .segments = trained_segments(of_model.graph, table_),
      .losses = array_in<ShardLoss>(memory, prefix + "losses", static_cast<std::size_t>(settings_.shards))}));
  ComputePhase& phase = *phases_.back();
  std::vector<ShardRange> dealt;
  for (int core = 0; core < cores_.count(); ++core) {
    dealt.push_back(shards_of_core(core));
    ShardReducer* reducer = reducer_of(core);
    phase.runners.emplace_back(phase.plans, table_, weights_of(core),
                               reducer ? reducer->contribution() : std::span<float>{},
                               arenas_[static_cast<std::size_t>(core)]);
  }
  phase.queue = std::make_unique<ShardQueue>(std::move(dealt));
}

ShardReducer* ShardCompute::reducer_of(int core) const {
  const int before = split_.share_memory ? split_.rank * cores_.count() : 0;
  return reducers_[static_cast<std::size_t>(before + core)].get();
}

ShardRange ShardCompute::shards_of_core(int core) const {
  return shards_of(split_.rank, split_.ranks, core, cores_.count(), settings_.shards);
}

const Plan& ShardCompute::plan(ComputePhase& phase, std::int64_t samples) {
  phase.plans.prepare(samples);
  return phase.plans.at(samples);
}

void ShardCompute::set_buckets(ComputePhase& phase, std::vector<Bucket> buckets) {
  phase.buckets = std::move(buckets);
  phase.missing = std::vector<std::atomic<int>>(phase.buckets.size());
  phase.actions.clear();
}

void ShardCompute::prepare(const data::Batch& batch) {
  handed_in_ = false, samples_done_ = 0;
  if (settings_.race && racing_spans_.empty()) find_racing_spans();
  const ShardRange own = own_shards();
  if (shared_) shared_->start_step();
  for (auto& phase : phases_) {
    phase->queue->start_step();
    for (int s = own.first; s < own.last; ++s) {
      const auto samples = static_cast<std::int64_t>(batch.samples_of(static_cast<std::uint64_t>(s)).count);
      phase->plans.prepare(samples);
      if (samples > 0 && goes_node_by_node() && !phase->actions.contains(samples))
        phase->actions[samples] = node_actions(phase->plans.at(samples).graph, table_, phase->buckets);
    }
    if (batch.cursor().batch == 0) phase->carries.reset(own.first, own.last);
    for (auto& missing : phase->missing) missing = busy_cores_;
  }
}

void ShardCompute::run(ComputePhase& phase, int core, const data::Batch& batch, StepContext context, double mean_over) {
  const double begin = world_.now();
  context.loss_scale = static_cast<float>(1.0 / (mean_over * static_cast<double>(phase.loss_terms)));
  if (ShardReducer* reducer = reducer_of(core)) {
    reducer->start_step();
    if (takes_over()) bind_executors(phase, core, batch);
    const ShardRange range = shards_of_core(core);
    bool first = true;
    for (int s; (s = phase.queue->take(core)) >= 0; first = false)
      run_shard(phase, core, batch, context, {.shard = s, .first = first, .last = s + 1 == range.last});
    while (takes_over()) {
      const int place = shared_->reserve_place(core), s = place < 0 ? -1 : phase.queue->take_over();
      if (s < 0) {
        shared_->release_place(place);
        break;
      }
      run_shard(phase, core, batch, context, {.shard = s, .first = false, .last = false, .reserved = place});
    }
  }
  if (core == 0) seconds_ += phase.seconds = world_.now() - begin;
}

// A shard that a core takes over may have another size than its own: no step allocates for that later.
void ShardCompute::bind_executors(ComputePhase& phase, int core, const data::Batch& batch) {
  const ShardRange own = own_shards();
  std::uint64_t least = ~std::uint64_t{0}, most = 0;  // there are two sizes at most
  for (int s = own.first; s < own.last; ++s) {
    const std::uint64_t samples = batch.samples_of(static_cast<std::uint64_t>(s)).count;
    least = std::min(least, samples), most = std::max(most, samples);
  }
  for (const std::uint64_t samples : {most, least})  // the largest arena first: the others fit into it
    if (samples > 0) phase.runners[static_cast<std::size_t>(core)].executor(static_cast<std::int64_t>(samples));
}

void ShardCompute::run_shard(ComputePhase& phase, int core, const data::Batch& batch, StepContext context, Turn turn) {
  ShardReducer& reducer = *reducer_of(core);
  const auto shard = static_cast<std::size_t>(turn.shard);
  const auto count = batch.samples_of(shard).count;
  const auto samples = static_cast<std::int64_t>(count);
  context.shard = static_cast<std::uint32_t>(shard);
  context.share = static_cast<float>(static_cast<double>(count) / static_cast<double>(batch.samples()));
  if (hooks_.keep_going && core == 0 && !turn.first && !handed_in_ && !hooks_.keep_going()) handed_in_ = true;
  const bool left_out = handed_in_ && !turn.first;
  if (!left_out) samples_done_ += samples;
  if (core == 0) slow_down_.begin();
  phase.losses[shard] = {};
  const bool last = turn.last && hooks_.bucket_complete;  // then the reducer takes this shard bucket by bucket
  if (samples == 0 || left_out) {                         // empty: more shards than samples in an epoch's last batch
    std::ranges::fill(reducer.contribution(), 0.0f);
    if (last)
      for (std::size_t b = 0; b < phase.buckets.size(); ++b) complete(phase, core, b);
  } else {
    const auto node_by_node = [&](Executor& e) { run_nodes(phase, e, core, batch, context, last); };
    std::function<void(Executor&)> execute;
    if (hooks_.watch.on_node || goes_node_by_node()) execute = std::ref(node_by_node);  // a copy would be on the heap
    CarryStore* carries = phase.carries.empty() ? nullptr : &phase.carries;
    if (settings_.race) racing_read(parameters_, weights_of(core).data());
    Executor& e = phase.runners[static_cast<std::size_t>(core)].run(batch, settings_.fields, context, carries, execute);
    phase.losses[shard].loss = *reinterpret_cast<const float*>(e.output("loss").data());
    if (e.has_output("correct"))
      phase.losses[shard].correct = *reinterpret_cast<const float*>(e.output("correct").data());
    if (settings_.race) move_weights(reducer.contribution().data());
  }
  if (takes_over())
    shared_->fold(core, turn.shard, turn.reserved);
  else if (last)
    reducer.end_shard();
  else
    reducer.fold();
  if (core == 0 && !left_out) slow_down_.apply(hooks_.slowness);
}

// Weights whose gradient may travel as factors are left to whoever gets those.
void ShardCompute::find_racing_spans() {
  ComputePhase& phase = *phases_.front();
  std::vector<Range> thin;
  if (hooks_.take_factors)
    for_each_thin_product(plan(phase, 1).graph, table_,
                          [&](const ThinProduct& p, std::size_t) { thin.push_back(p.range); });
  for (const TrainedSpan& s : phase.segments)
    if (!s.statistic && std::ranges::find(thin, s.offset, &Range::begin) == thin.end()) racing_spans_.push_back(s);
}

void ShardCompute::move_weights(const float* gradient) {
  for (const TrainedSpan& s : racing_spans_)
    racing_add(parameters_.subspan(s.offset, s.size), static_cast<float>(-hooks_.race_rate * s.lr_scale),
               gradient + s.offset);
}

// The nodes of one shard, with everything that the hooks want around them.
void ShardCompute::run_nodes(ComputePhase& phase, Executor& executor, int core, const data::Batch& batch,
                             StepContext context, bool last) {
  const std::vector<Node>& nodes = executor.plan().graph.nodes();
  const std::vector<NodeActions>* actions = nullptr;
  if (goes_node_by_node())
    actions = &phase.actions.at(static_cast<std::int64_t>(batch.samples_of(context.shard).count));
  const Watch& watch = hooks_.watch;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (hooks_.before_reading) {
      const double asked = world_.now();
      for (const Range& r : (*actions)[n].reads) hooks_.before_reading(r);
      const double waited = world_.now() - asked;  // which is not computing
      if (core == 0) slow_down_.leave_out(waited), waited_for_weights_ += waited;
    }
    const bool taken = actions && offer_factors((*actions)[n], executor, batch, context.shard, n);
    const double begin = watch.on_node ? watch.now() : 0;
    if (!taken && executor.run_node(context, n) && watch.on_node) watch.on_node(core, nodes[n], begin, watch.now());
    if (!actions) continue;
    const NodeActions& after = (*actions)[n];
    if (core == 0) {
      world_.set_status(after.status);
      if (!taken) world_.compute(after.flops);
    }
    if (!last || after.completes.empty()) continue;
    if (core == 0) slow_down_.apply(hooks_.slowness);  // before others see what is complete
    for (const std::size_t bucket : after.completes) complete(phase, core, bucket);
  }
}

// True if they were taken, so that the node need not be run.
bool ShardCompute::offer_factors(const NodeActions& actions, const Executor& executor, const data::Batch& batch,
                                 std::uint64_t shard, std::size_t node) const {
  if (!hooks_.take_factors || actions.product < 0) return false;
  const data::IndexRange samples = batch.samples_of(shard);
  const Operands& o = executor.operands(node);
  const auto rows = static_cast<std::size_t>(o.in[0].type.shape[0]);
  return hooks_.take_factors({.product = static_cast<std::size_t>(actions.product),
                              .first_row = (samples.first - batch.cursor().samples.first) * (rows / samples.count),
                              .rows = rows,
                              .errors = o.in[0].f32(),
                              .inputs = o.in[1].f32()});
}

void ShardCompute::complete(ComputePhase& phase, int core, std::size_t bucket) {
  const Bucket& b = phase.buckets[bucket];
  reducer_of(core)->fold_part(b.begin, b.end);
  if (--phase.missing[bucket] == 0) hooks_.bucket_complete(bucket);
}

bool ShardCompute::sum_losses(ComputePhase& phase) {
  phase.total = {};
  for (const ShardLoss& l : phase.losses) phase.total.loss += l.loss;
  for (const ShardLoss& l : phase.losses) phase.total.correct += l.correct;
  return std::isfinite(phase.total.loss);
}

Executor& ShardCompute::load(ComputePhase& phase, const data::Batch& batch, int shard) {
  int core = 0;
  while (shard >= shards_of_core(core).last) ++core;
  return phase.runners[static_cast<std::size_t>(core)].load(batch, settings_.fields, shard, nullptr);
}

double ShardCompute::flops_per_sample() {
  double flops = 0;
  for (auto& phase : phases_)
    flops += plan(*phase, 8).flops / 8;  // per-sample work does not depend on their number; eight fill a batch8 vector
  return flops;
}

std::size_t ShardCompute::arena_bytes() const {
  std::size_t sum = 0;
  for (const auto& runner : phases_.front()->runners) sum += runner.arena_bytes();
  if (shared_) sum += shared_->bytes();
  return sum;
}

std::vector<ShardCompute::Profile> ShardCompute::profile(const data::Batch& batch, int repeats,
                                                         const std::function<double()>& now) {
  std::vector<Profile> profiles;
  for (auto& phase : phases_) {
    phase->plans.prepare(static_cast<std::int64_t>(batch.samples_of(0).count));
    Executor& e = phase->runners[0].load(batch, settings_.fields, 0, nullptr);
    Profile p{phase->name, &e.plan().graph, std::vector<double>(e.plan().graph.nodes().size())};
    const StepContext context{.seed = settings_.seed, .loss_scale = 1.0f / static_cast<float>(batch.samples())};
    for (int i = -1; i < repeats; ++i) {  // once to warm up
      phase->runners[0].load(batch, settings_.fields, 0, nullptr);
      e.run_watched(context, now, [&](const Node& node, double begin, double end) {
        if (i >= 0) p.seconds[static_cast<std::size_t>(&node - p.graph->nodes().data())] += (end - begin) / repeats;
      });
    }
    profiles.push_back(std::move(p));
  }
  return profiles;
}

}  // namespace echelon
