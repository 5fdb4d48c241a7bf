#include "parallel/planned/stage_compute.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "collective/collectives.h"
#include "collective/shard_sum.h"
#include "nn/initialise.h"

namespace echelon {

namespace {

std::span<std::byte> room_for(std::vector<Buffer>& buffers, std::size_t bytes) {
  if (buffers.empty() || buffers.back().bytes() < bytes) buffers.emplace_back(bytes);
  return {buffers.back().data(), buffers.back().bytes()};
}

}  // namespace

StageCompute::StageCompute(World& world, const StagePlans& plans, const Settings& settings,
                           std::shared_ptr<std::vector<Buffer>> arena)
    : world_(world),
      plans_(plans),
      settings_(settings),
      carries_(graph(), settings.shards),
      arena_(std::move(arena)),
      places_(static_cast<std::size_t>(settings.live)),
      slow_down_(world) {
  table_.include(graph());
}

void StageCompute::allocate(Optim optim, std::vector<TrainedSpan> segments, Group& group,
                            const std::vector<Range>& ranges, Communicator& messages) {
  group_ = &group;
  ranges_ = ranges;
  own_ = settings_.zero > 0 ? ranges[static_cast<std::size_t>(group.index())] : Range{0, table_.floats()};
  // What ranks read from each other lies in memory that all of them see, where there is any.
  if (settings_.offloads_parameters) {
    parameters_ = allocated_parameters_ =
        files_.emplace_back(settings_.offload, own_.count() * sizeof(float)).as<float>();
  } else if (settings_.zero > 0) {
    allocated_parameters_ = group.allocate_span<float>(settings_.zero >= 3 ? largest_range(ranges) : table_.floats());
    parameters_ = allocated_parameters_.first(settings_.zero >= 3 ? own_.count() : table_.floats());
  } else {
    parameter_memory_ = Buffer(table_.floats() * sizeof(float));
    parameters_ = allocated_parameters_ = parameter_memory_.as<float>();
  }
  fill_parameters();
  for (int i = 0; i < settings_.saved_versions; ++i) saved_.emplace_back(table_.floats() * sizeof(float));
  if (settings_.zero >= 2) {
    const std::size_t bytes = ShardReducer::memory_bytes(settings_.shards, 0, settings_.shards, own_.count());
    if (settings_.offloads_parameters)
      contributions_ = files_.emplace_back(settings_.offload, bytes).as<std::byte>();
    else
      contributions_ = (contribution_memory_ = Buffer(bytes)).as<std::byte>();
    reducer_ = std::make_unique<ShardReducer>(settings_.shards, 0, settings_.shards, own_.count(), contributions_);
    const GradientBuckets buckets = gradient_buckets(plan(plans_.largest_shard()), table_);
    bucket_bytes_ = buckets.bytes();
    exchange_ = std::make_unique<StateExchange>(
        group, messages,
        StateExchange::Shares{.table = &table_,
                              .ranges = ranges,
                              .parameters = settings_.zero >= 3 ? parameters_ : std::span<float>{},
                              .allocated = settings_.zero >= 3 && !settings_.offloads_parameters ? allocated_parameters_
                                                                                                 : std::span<float>{},
                              .in_files = settings_.offloads_parameters,
                              .sums = reducer_.get(),
                              .sums_in_file = settings_.offloads_parameters ? contributions_ : std::span<std::byte>{},
                              .buckets = buckets,
                              .stage = stage()});
  } else {
    contributions_ = group.allocate(contribution_bytes(plans_.layout(), stage(), part(), table_.floats()));
    const ShardRange summed = settings_.sums_outside ? ShardRange{0, 1} : shards();
    reducer_ = std::make_unique<ShardReducer>(settings_.sums_outside ? 1 : settings_.shards, summed.first, summed.last,
                                              table_.floats(), contributions_, settings_.order);
  }
  const auto within = [&](std::span<float> flat, std::size_t first) {
    return flat.subspan(own_.begin - first, own_.count());
  };
  update_ = std::make_unique<Update>(
      std::move(optim.rule), optim.clip, std::move(segments), within(parameters_, first_parameter()),
      within(reducer_->total(), settings_.zero >= 2 ? own_.begin : 0),
      [this](const std::string&, std::size_t bytes) { return memory_for_state(bytes); }, own_.begin);
}

// The most that any of the ranks that have the stage needs, so that all can allocate as much.
std::size_t StageCompute::contribution_bytes(const PlanLayout& layout, int stage, int part, std::size_t floats) {
  if (layout.plan().sums_outside()) return ShardReducer::memory_bytes(1, 0, 1, floats);
  std::size_t most = 0;
  for (const int rank : layout.ranks_of_stage(stage, part))
    for (const HostedStage& h : layout.hosted(rank))
      if (h.stage == stage && h.part == part)
        most = std::max(most, ShardReducer::memory_bytes(layout.shards(), h.shards.first, h.shards.last, floats,
                                                         layout.order_of(rank, stage)));
  return most;
}

void StageCompute::fill_parameters() {
  if (settings_.zero < 3) return nn::initialise(table_, settings_.seed, parameters_);
  std::vector<float> whole;  // one parameter
  for (const ParameterTable::Entry& e : table_.entries()) {
    const Range piece = overlap(own_, {e.offset, e.offset + e.size});
    if (piece.count() == 0) continue;
    whole.resize(e.size);
    nn::initialise(e.parameter, settings_.seed, whole);
    std::ranges::copy(std::span(whole).subspan(piece.begin - e.offset, piece.count()),
                      parameters_.subspan(piece.begin - own_.begin).begin());
  }
}

std::span<std::byte> StageCompute::memory_for_state(std::size_t bytes) {
  if (settings_.offload.empty()) return state_memory_.emplace_back(bytes).as<std::byte>();
  return files_.emplace_back(settings_.offload, bytes).as<std::byte>();
}

void StageCompute::sum_over_ranks() {
  const ShardSum sum{.shards = settings_.shards,
                     .partials = reducer_->partial_sums(),
                     .end = reducer_->total().size(),
                     .out = reducer_->total().data(),
                     .parts = ranges_};
  if (settings_.zero == 0)
    all_reduce_shards(*group_, {sum.shards, sum.partials, sum.begin, sum.end, sum.out}, "of a stage's gradients");
  else if (settings_.zero == 1)
    reduce_scatter_shards(*group_, sum, "of a stage's gradients");
  else
    exchange_->drain();  // sums are complete; parameters may change when nobody reads them any more
}

void StageCompute::gather_parameters() {
  if (settings_.zero != 1 && settings_.zero != 2) return;
  all_gather(*group_, typed_span(parameters_), ranges_, "of a stage's parameters");
}

const StagePlan& StageCompute::plan(MicroBatchSize size) const { return plans_.at(size).of(stage(), part()); }

const Graph& StageCompute::graph() const { return plan(plans_.largest_shard()).plan.graph; }

bool StageCompute::reads_data() const {
  return std::ranges::any_of(graph().inputs(), [&](const Graph::Input& input) {
    return std::ranges::any_of(settings_.fields, [&](const data::Field& f) { return f.name == input.name; });
  });
}

void StageCompute::start_step() {
  reducer_->start_step();
  if (exchange_) exchange_->start_step();
}

void StageCompute::save_version(std::int64_t version) {
  if (saved_.empty()) return;
  std::ranges::copy(parameters_, saved_[static_cast<std::size_t>(version) % saved_.size()].as<float>().begin());
}

bool StageCompute::ends_pass(const StageTask& task) const {
  return task.segment + 1 == segments_of(plans_.layout().plan().segments, task.stage, task.pass);
}

StageCompute::Place& StageCompute::place_of(const StageTask& task) {
  const int wanted = task.pass == Pass::forward && task.segment == 0 ? -1 : task.micro_batch;
  const auto it = std::ranges::find(places_, wanted, &Place::micro_batch);
  invariant(it != places_.end(), "as many places as the schedule keeps micro-batches alive");
  it->micro_batch = task.pass == last_pass() && ends_pass(task) ? -1 : task.micro_batch;
  return *it;
}

// A place's executors share its memory: one can go on with what another began, on other weights.
Executor& StageCompute::executor(Place& place, MicroBatchSize size, std::int64_t version) {
  const std::int64_t saved = version < 0 ? -1 : version % static_cast<std::int64_t>(saved_.size());
  auto& slot = place.executors[{size, saved}];
  if (!slot) {
    const Plan& p = plan(size).plan;
    const std::span<float> weights = saved < 0 ? parameters_ : saved_[static_cast<std::size_t>(saved)].as<float>();
    slot =
        std::make_unique<Executor>(p, table_, weights, reducer_->contribution(),
                                   room_for(*arena_, p.memory.arena_bytes), room_for(place.kept, p.memory.kept_bytes));
  }
  return *slot;
}

namespace {

// All of it, or the end of every sample where the graph is for shorter ones.
void copy_field(std::span<const std::byte> field, std::size_t samples, std::span<std::byte> input) {
  const std::size_t has = field.size() / samples, wants = input.size() / samples;
  for (std::size_t i = 0; i < samples && wants < has; ++i)
    std::memcpy(input.data() + i * wants, field.data() + (i + 1) * has - wants, wants);
  if (wants >= has) std::memcpy(input.data(), field.data(), input.size());
}

}  // namespace

void StageCompute::load(Executor& e, const data::Batch& batch, int shard) {
  const auto s = static_cast<std::uint64_t>(shard);
  for (std::size_t f = 0; f < settings_.fields.size(); ++f) {
    const auto it = e.inputs().find(settings_.fields[f].name);
    if (it == e.inputs().end()) continue;
    copy_field(batch.field(s, f), static_cast<std::size_t>(batch.samples_of(s).count), it->second);
  }
  if (carries_.empty()) return;
  std::size_t at = 0;
  for (const auto& c : e.carries()) {
    std::memcpy(c.from.data(), carries_.of(shard).data() + at, c.from.size());
    at += aligned(c.from.size());
  }
}

void StageCompute::save_carries(const Executor& e, int shard) {
  std::size_t at = 0;
  for (const auto& c : e.carries()) {
    std::memcpy(carries_.of(shard).data() + at, c.to.data(), c.to.size());
    at += aligned(c.to.size());
  }
}

// Waits for other stages take as long as they take; what is sent has been computed, also in simulated time.
void StageCompute::run_nodes(Executor& e, const StagePlan& p, Range nodes, const StepContext& context,
                             const Watch& watch, double slowness) {
  using Kind = StagePlan::NodeInfo::Kind;
  slow_down_.begin();
  for (std::size_t n = nodes.begin; n < nodes.end; ++n) {
    if (p.nodes[n].kind == Kind::sends) slow_down_.apply(slowness);
    const double begin = world_.now();
    if (!e.run_node(context, n)) continue;
    if (p.nodes[n].kind != Kind::computes && p.nodes[n].kind != Kind::sends) slow_down_.leave_out(world_.now() - begin);
    if (watch.on_node) watch.on_node(0, p.plan.graph.nodes()[n], begin, world_.now());
    world_.compute(p.nodes[n].flops);
  }
  slow_down_.apply(slowness);
}

// The other ranks of the stage have samples, and count on this one: what it computes is nothing, and its gradients
// zero.
void StageCompute::take_part_without_samples(Pass pass, const StepContext& context) {
  using Kind = StagePlan::NodeInfo::Kind;
  const StagePlan& p = plan(plans_.largest_shard());
  Executor& e = executor(*std::ranges::find(places_, -1, &Place::micro_batch), plans_.largest_shard(), -1);
  for (std::size_t n = p.first(pass); n < p.last(pass); ++n) {
    if (p.nodes[n].kind == Kind::contributes) {
      const Operand& gradient = e.operands(n).in[0];
      std::memset(gradient.data, 0, gradient.type.bytes());
    }
    if (p.nodes[n].kind == Kind::gathers || p.nodes[n].kind == Kind::contributes) e.run_node(context, n);
  }
}

void StageCompute::run(const StageTask& task, MicroBatchSize size, const data::Batch& batch, StepContext context,
                       std::span<ShardLoss> losses, const Watch& watch, double slowness, std::int64_t version) {
  if (exchange_) context.communicator = exchange_.get();
  const auto shard = static_cast<int>(context.shard);
  if (size.samples > 0) {
    Executor& e = executor(place_of(task), size, version);
    if (task.pass == Pass::forward && task.segment == 0) load(e, batch, shard);
    run_nodes(e, plan(size), plan(size).nodes_of(task), context, watch, slowness);
    if (task.pass == Pass::forward && ends_pass(task)) {
      save_carries(e, shard);
      ShardLoss& loss = losses[context.shard];
      if (e.has_output("loss")) loss.loss = *reinterpret_cast<const float*>(e.output("loss").data());
      if (e.has_output("correct")) loss.correct = *reinterpret_cast<const float*>(e.output("correct").data());
    }
  } else if (exchange_) {  // more shards than samples in an epoch's last batch
    take_part_without_samples(task.pass, context);
  } else if (task.pass == last_pass() && ends_pass(task)) {
    std::ranges::fill(reducer_->contribution(), 0.0f);
  }
  if (task.pass == last_pass() && ends_pass(task) && !exchange_ && !settings_.sums_outside) reducer_->fold();
}

void StageCompute::add_bytes(RankBytes& bytes) const {
  (settings_.offloads_parameters ? bytes.disk : bytes.parameters) += allocated_parameters_.size_bytes();
  for (const Buffer& b : saved_) bytes.parameters += b.bytes();
  (settings_.offloads_parameters ? bytes.disk : bytes.contributions) += contributions_.size();
  bytes.contributions += bucket_bytes_;
  for (const Update::Slot& s : update_->slots())
    (settings_.offload.empty() ? bytes.state : bytes.disk) += s.values.size_bytes();
  for (const Place& p : places_)
    for (const Buffer& b : p.kept) bytes.activations += b.bytes();
}

}  // namespace echelon
