#include "parallel/planned/planned_engine.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "nn/initialise.h"
#include "parallel/planned/stage_setup.h"
#include "parallel/step/not_finite.h"

namespace echelon {

namespace {

WholeModel::Held parameters_of(StageCompute& stage) { return {stage.parameters(), stage.first_parameter()}; }

ParameterTable table_of(const models::Model& model) {
  ParameterTable table;
  for (const auto& phase : model.training(1)) table.include(phase.graph);
  table.include(model.evaluation(1));
  return table;
}

}  // namespace

PlannedEngine::PlannedEngine(const EngineSettings& s, Team& team)
    : LockStepEngine(s, team),
      layout_(*s.plan, s.shards),
      on_all_(s.plan->evaluate == "all"),
      table_(table_of(*s.model)),
      plans_(*s.model, layout_, s.largest_shard,
             [model = s.model](std::int64_t rows) { return model->of_length(rows); }),
      hosted_(layout_.hosted(world_.rank())),
      losses_(static_cast<std::size_t>(s.shards)),
      stops_(static_cast<std::size_t>(world_.size())),
      arena_(std::make_shared<std::vector<Buffer>>()),
      waits_(team) {
  times_.waiting_for.resize(stops_.size());
  if (world_.size() == 1) alone_ = std::make_unique<Group>(Group::everyone(world_));
  loss_terms_ = s.model->training(1).front().loss_terms;
  const StagePlans::CutGraph& largest = plans_.prepare(s.largest_shard, hosted_);
  messages_ = std::make_unique<StageMessages>(everyone(), layout_, largest.placed.messages);
  shared_weights_ = largest.placed.copies;
  stages_ = make_stages(settings_, world_, layout_, plans_, hosted_, largest, arena_);
  whole_ = std::make_unique<WholeModel>(team, layout_, table_, plans_.whole(s.largest_shard), largest.placed, stages_);
  state_ = std::make_unique<WholeState>(team, *whole_, stages_, table_.floats(),
                                        [this](std::size_t bytes) { return memory_for_whole(bytes); });
  replica_ = std::make_unique<Group>(everyone().split(layout_.replica_of(world_.rank()), world_.rank()));
  groups_ = groups_of_stages(everyone(), world_.rank(), layout_, hosted_);
  for (std::size_t i = 0; i < stages_.size(); ++i)
    stages_[i]->allocate(s.make_optim(), whole_->segments(*stages_[i]), *groups_[i],
                         whole_->ranges_of(stages_[i]->stage(), stages_[i]->part()), *messages_);
  norms_ = std::make_unique<NormGather>(*replica_, everyone(), layout_, *whole_, stages_);
  make_model();
  loss_gather_ = std::make_unique<LossGather>(team, shards_with_losses(layout_, world_.size()));
}

WholeMemory PlannedEngine::memory_for_whole(std::size_t bytes) const {
  if (on_all_) return WholeMemory::of_buffer(bytes);
  const std::string& offload = layout_.plan().offload;
  return WholeMemory::of_file(offload.empty() ? settings_.folder : offload, bytes);
}

// The first values: random numbers, which every rank knows, or what `start` writes over them on rank 0.
void PlannedEngine::make_model() {
  if (on_all_ || world_.rank() == 0) {
    model_memory_ = memory_for_whole(table_.floats() * sizeof(float));
    model_ = {reinterpret_cast<float*>(model_memory_.bytes.data()), table_.floats()};
    nn::initialise(table_, settings_.seed, model_);
    if (settings_.start) settings_.start(table_, model_);
  }
  if (settings_.start) whole_->distribute(WholeModel::What::parameters, model_, parameters_of);
}

void PlannedEngine::adapt(data::LoaderOptions& options) const {
  const ShardRange own = layout_.shards_of_replica(layout_.replica_of(world_.rank()));
  const bool reads = std::ranges::any_of(stages_, [](const auto& s) { return s->reads_data(); });
  options.shards = static_cast<std::uint64_t>(settings_.shards);
  options.own = data::IndexRange{static_cast<std::uint64_t>(own.first),
                                 reads ? static_cast<std::uint64_t>(own.count()) : std::uint64_t{0}};
  // A loader reads neighbours, and these are not: it reads all.
  if (own.stride > 1 && reads) options.own = data::IndexRange{0, static_cast<std::uint64_t>(settings_.shards)};
}

// --- a step ---

StepResult PlannedEngine::do_step(std::uint64_t step, double lr, const data::Batch& batch, bool asks_to_stop,
                                  double slowness) {
  StepResult result = compute(step, batch, settings_.seed, asks_to_stop, slowness);
  finish_step(step, lr);
  result.gradient_norm = stages_.front()->update().gradient_norm();
  return result;
}

StepResult PlannedEngine::compute(std::uint64_t step, const data::Batch& batch, std::uint64_t seed, bool asks_to_stop,
                                  double slowness) {
  const double began = world_.now();
  waits_.begin();
  prepare(batch);
  run_tasks(step, batch, seed, slowness);
  const double computed = world_.now();
  RankTimes tasks{.waiting_for = std::move(times_.waiting_for)};
  waits_.end(computed - began, tasks);
  times_.compute += tasks.exchange;  // what was no wait
  times_.waiting_for = std::move(tasks.waiting_for);
  waits_.begin();
  world_.set_status("the exchange of gradients");
  stops_[static_cast<std::size_t>(world_.rank())] = {asks_to_stop};
  messages_->drain();  // ranks that wait at a barrier send nothing
  share_losses();
  double loss = 0, correct = 0;
  for (const ShardLoss& l : losses_) loss += l.loss;
  for (const ShardLoss& l : losses_) correct += l.correct;
  if (!std::isfinite(loss)) explain(step);
  sum_over_ranks();
  const double summed = world_.now();
  watch_.span({"sum over ranks", computed, summed, true});
  waits_.end(summed - computed, times_);

  const auto samples = static_cast<std::int64_t>(batch.samples());
  StepResult result{.correct = correct,
                    .samples = samples,
                    .terms = samples * loss_terms_,
                    .stop = std::ranges::any_of(stops_, [](const StopRequest& r) { return r.asked != 0; })};
  if (samples > 0) result.loss = loss / static_cast<double>(result.terms);
  return result;
}

void PlannedEngine::finish_step(std::uint64_t step, double lr) {
  const double began = world_.now();
  waits_.begin();
  update(step, lr);
  for (const auto& stage : stages_) stage->gather_parameters();
  whole_->copy_shared(shared_weights_, parameters_of);
  watch_.span({"update", began, world_.now()});
  waits_.end(world_.now() - began, times_);
}

StageCompute& PlannedEngine::only_stage() {
  invariant(stages_.size() == 1, "a rank with one stage");
  return *stages_.front();
}

std::vector<TrainedSpan> PlannedEngine::segments_here() {
  std::vector<TrainedSpan> segments = whole_->segments(only_stage());
  std::erase_if(segments, &TrainedSpan::elsewhere);
  return segments;
}

void PlannedEngine::prepare(const data::Batch& batch) {
  const ShardRange own = layout_.shards_of_replica(layout_.replica_of(world_.rank()));
  for (int s = own.first; s < own.last; s += own.stride)
    if (const auto samples = static_cast<std::int64_t>(batch.samples_of(static_cast<std::uint64_t>(s)).count);
        samples > 0 && !plans_.has(samples))
      messages_->prepare(plans_.prepare(samples, hosted_).placed.messages);
  std::ranges::fill(losses_, ShardLoss{});
  for (const auto& stage : stages_) {
    stage->start_step();
    if (batch.cursor().batch == 0)
      for (int s = own.first; s < own.last; s += own.stride) stage->carries().reset(s, s + 1);
  }
}

// The rank's list, from top to bottom.
void PlannedEngine::run_tasks(std::uint64_t step, const data::Batch& batch, std::uint64_t seed, double slowness) {
  const ShardRange own = layout_.shards_of_replica(layout_.replica_of(world_.rank()));
  for (const StageTask& task : layout_.list(world_.rank())) {
    const int shard = own.first + task.micro_batch * own.stride;
    const auto count = static_cast<std::int64_t>(batch.samples_of(static_cast<std::uint64_t>(shard)).count);
    run_task(task, count, batch, context_of(shard, step, batch, seed), slowness);
  }
}

void PlannedEngine::run_micro_batch(int shard, std::uint64_t step, const data::Batch& batch, std::uint64_t seed,
                                    double slowness) {
  const auto count = static_cast<std::int64_t>(batch.samples_of(static_cast<std::uint64_t>(shard)).count);
  for (const Pass pass : {Pass::forward, Pass::backward})
    run_task({pass, 0, shard}, count, batch, context_of(shard, step, batch, seed), slowness);
}

StepContext PlannedEngine::context_of(int shard, std::uint64_t step, const data::Batch& batch,
                                      std::uint64_t seed) const {
  const auto samples = static_cast<double>(batch.samples());
  const auto count = static_cast<double>(batch.samples_of(static_cast<std::uint64_t>(shard)).count);
  StepContext context{.seed = seed, .step = static_cast<std::uint32_t>(step), .communicator = messages_.get()};
  context.loss_scale = static_cast<float>(1.0 / (samples * static_cast<double>(loss_terms_)));
  context.shard = static_cast<std::uint32_t>(shard);
  context.share = static_cast<float>(count / samples);
  return context;
}

void PlannedEngine::run_task(const StageTask& task, MicroBatchSize size, const data::Batch& batch,
                             const StepContext& context, double slowness, std::int64_t version) {
  const auto shard = static_cast<int>(context.shard);
  std::array<char, 64> status;
  const auto end = fmt::format_to_n(status.data(), status.size(), "{} of stage {}, micro-batch {}", name_of(task.pass),
                                    task.stage, shard);
  world_.set_status({status.data(), std::min(end.size, status.size())});
  if (size.samples > 0) messages_->use(plans_.at(size).placed.messages);
  const double began = world_.now();
  stage_of(task.stage, shard).run(task, size, batch, context, losses_, watch_, slowness, version);
  if (watch_.on_task) watch_.on_task({task.pass, task.stage, shard}, began, world_.now());
}

StageCompute& PlannedEngine::stage_of(int stage, int shard) {
  const auto it =
      std::ranges::find_if(stages_, [&](const auto& s) { return s->stage() == stage && s->shards().contains(shard); });
  invariant(it != stages_.end(), "a rank's list has only what the rank has");
  return **it;
}

void PlannedEngine::sum_over_ranks() {
  for (const auto& stage : stages_) stage->sum_over_ranks();
}

void PlannedEngine::update(std::uint64_t step, double lr) {
  for (const auto& stage : stages_)
    stage->update().begin({.number = static_cast<std::int64_t>(step) + 1, .lr = lr, .grad_scale = 1});
  for (int phase = 0; phase < stages_.front()->update().phases(); ++phase) {
    for (const auto& stage : stages_) stage->update().run(phase, stage->update().held());
    norms_->run(phase);
    for (const auto& stage : stages_) stage->update().fold(phase);
  }
}

// The rank that has the loss says so, and the others end with it.
void PlannedEngine::explain(std::uint64_t step) {
  const auto bad = std::ranges::find_if(losses_, [](const ShardLoss& l) { return !std::isfinite(l.loss); });
  const int shard = static_cast<int>(bad - losses_.begin());
  const Rank rank = layout_.rank_of(layout_.replica_of_shard(shard), layout_.line_of(shard), layout_.stages() - 1, 0);
  if (rank != world_.rank()) wait_for_explanation(world_, rank);
  throw NotFinite(
      fmt::format("step {}: the loss is not a number (micro-batch {}). Try a smaller optim.lr, a warm-up "
                  "(schedule.warmup_steps) or "
                  "optim.clip_norm, and look at the data",
                  step, shard));
}

// --- the whole model ---

void PlannedEngine::read_model() {
  whole_->collect(WholeModel::What::parameters, model_, parameters_of);
  if (on_all_) team_.broadcast(std::as_writable_bytes(model_));
}

// Replicas of a stage, besides the copies of the whole model that were made from one of them. With zero=3 nobody has
// what another one has.
std::vector<HeldWeights> PlannedEngine::held_weights() {
  std::vector<HeldWeights> held = LockStepEngine::held_weights();
  if (layout_.plan().zero < 3)
    for (const auto& stage : stages_) held.push_back({stage->stage(), stage->part(), stage->parameters()});
  return held;
}

void PlannedEngine::scatter() {
  whole_->distribute(WholeModel::What::parameters, model_, parameters_of);
  if (on_all_) team_.broadcast(std::as_writable_bytes(model_));
  state_->scatter();
}

// --- figures ---

double PlannedEngine::flops_per_sample() {
  const Graph graph = optimise(std::move(settings_.model->training(8).front().graph));
  double flops = 0;
  for (const Node& node : graph.nodes()) flops += node.op->flops(graph.types(node.in), graph.types(node.out));
  return flops / 8;
}

RankBytes PlannedEngine::bytes() const {
  RankBytes bytes{
      .messages = messages_->bytes(), .model = model_memory_.memory.bytes(), .disk = model_memory_.file.bytes()};
  for (const Buffer& b : *arena_) bytes.activations += b.bytes();
  for (const auto& stage : stages_) stage->add_bytes(bytes);
  return bytes;
}

std::vector<Figure> PlannedEngine::figures() {
  std::vector<Figure> figures;
  for (const RankBytes& rank : team_.all_gather_struct(bytes()))
    figures.emplace_back(fmt::format("bytes_rank_{}", figures.size()), static_cast<double>(rank.all()));
  int rank = 0;
  for (const double sent : team_.all_gather_struct(messages_->sent()))
    figures.emplace_back(fmt::format("stage_bytes_sent_rank_{}", rank++), sent);
  return figures;
}

}  // namespace echelon
