#include "parallel/planned/stage_compute.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
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
  parameters_ = Buffer(table_.floats() * sizeof(float));
  nn::initialise(table_, settings_.seed, parameters());
  for (int i = 0; i < settings_.saved_versions; ++i) saved_.emplace_back(table_.floats() * sizeof(float));
  const ShardRange& own = shards();
  contributions_ = Buffer(ShardReducer::memory_bytes(settings_.shards, own.first, own.last, table_.floats()));
  reducer_ = std::make_unique<ShardReducer>(settings_.shards, own.first, own.last, table_.floats(),
                                            contributions_.as<std::byte>());
}

void StageCompute::set_update(Optim optim, std::vector<TrainedSpan> segments, std::size_t own_blocks) {
  own_blocks_ = own_blocks;
  update_ = std::make_unique<Update>(std::move(optim.rule), optim.clip, std::move(segments), parameters(), total());
}

const StagePlan& StageCompute::plan(std::int64_t slice) const { return plans_.at(slice).of(stage(), part()); }

const Graph& StageCompute::graph() const { return plan(plans_.largest_slice()).plan.graph; }

bool StageCompute::reads_data() const {
  return std::ranges::any_of(graph().inputs(), [&](const Graph::Input& input) {
    return std::ranges::any_of(settings_.fields, [&](const data::Field& f) { return f.name == input.name; });
  });
}

std::span<float> StageCompute::of(std::span<float> flat, const std::string& parameter) const {
  const ParameterTable::Entry& e = table_.find(parameter);
  return flat.subspan(e.offset, e.size);
}

void StageCompute::start_step() { reducer_->start_step(); }

void StageCompute::save_version(std::int64_t version) {
  if (saved_.empty()) return;
  std::ranges::copy(parameters(), saved_[static_cast<std::size_t>(version) % saved_.size()].as<float>().begin());
}

StageCompute::Place& StageCompute::place_of(const StageTask& task) {
  const int wanted = task.pass == Pass::forward ? -1 : task.micro_batch;
  const auto it = std::ranges::find(places_, wanted, &Place::micro_batch);
  invariant(it != places_.end(), "as many places as the schedule keeps micro-batches alive");
  it->micro_batch = task.pass == last_pass() ? -1 : task.micro_batch;
  return *it;
}

// A place's executors share its memory: one can go on with what another began, on other weights.
Executor& StageCompute::executor(Place& place, std::int64_t slice, std::int64_t version) {
  const std::int64_t saved = version < 0 ? -1 : version % static_cast<std::int64_t>(saved_.size());
  auto& slot = place.executors[{slice, saved}];
  if (!slot) {
    const Plan& p = plan(slice).plan;
    const std::span<float> weights = saved < 0 ? parameters() : saved_[static_cast<std::size_t>(saved)].as<float>();
    slot =
        std::make_unique<Executor>(p, table_, weights, reducer_->contribution(),
                                   room_for(*arena_, p.memory.arena_bytes), room_for(place.kept, p.memory.kept_bytes));
  }
  return *slot;
}

void StageCompute::load(Executor& e, const data::Batch& batch, int shard) {
  const auto s = static_cast<std::uint64_t>(shard);
  for (std::size_t f = 0; f < settings_.fields.size(); ++f) {
    const auto it = e.inputs().find(settings_.fields[f].name);
    if (it == e.inputs().end()) continue;
    std::memcpy(it->second.data(), batch.field(s, f).data(), it->second.size());
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
void StageCompute::run_nodes(Executor& e, const StagePlan& p, Pass pass, const StepContext& context, const Watch& watch,
                             double slowness) {
  using Kind = StagePlan::NodeInfo::Kind;
  slow_down_.begin();
  for (std::size_t n = p.first(pass); n < p.last(pass); ++n) {
    if (p.nodes[n].kind == Kind::sends) slow_down_.apply(slowness);
    const double begin = world_.now();
    if (!e.run_node(context, n)) continue;
    if (p.nodes[n].kind == Kind::receives) slow_down_.leave_out(world_.now() - begin);
    if (watch.on_node) watch.on_node(0, p.plan.graph.nodes()[n], begin, world_.now());
    world_.compute(p.nodes[n].flops);
  }
  slow_down_.apply(slowness);
}

void StageCompute::run(const StageTask& task, std::int64_t slice, const data::Batch& batch, const StepContext& context,
                       std::span<ShardLoss> losses, const Watch& watch, double slowness, std::int64_t version) {
  const auto shard = static_cast<int>(context.shard);
  if (slice > 0) {
    Executor& e = executor(place_of(task), slice, version);
    if (task.pass == Pass::forward) load(e, batch, shard);
    run_nodes(e, plan(slice), task.pass, context, watch, slowness);
    if (task.pass == Pass::forward) {
      save_carries(e, shard);
      ShardLoss& loss = losses[context.shard];
      if (e.has_output("loss")) loss.loss = *reinterpret_cast<const float*>(e.output("loss").data());
      if (e.has_output("correct")) loss.correct = *reinterpret_cast<const float*>(e.output("correct").data());
    }
  } else if (task.pass == last_pass()) {  // more shards than samples in an epoch's last batch
    std::ranges::fill(reducer_->contribution(), 0.0f);
  }
  if (task.pass == last_pass()) reducer_->fold();
}

void StageCompute::add_bytes(RankBytes& bytes) const {
  bytes.parameters += parameters_.bytes();
  for (const Buffer& b : saved_) bytes.parameters += b.bytes();
  bytes.contributions += contributions_.bytes();
  for (const Update::Slot& s : update_->slots()) bytes.state += s.values.size_bytes();
  for (const Place& p : places_)
    for (const Buffer& b : p.kept) bytes.activations += b.bytes();
}

}  // namespace echelon
