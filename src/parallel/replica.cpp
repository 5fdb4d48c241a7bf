#include "parallel/replica.h"

#include <algorithm>
#include <numeric>

#include "collective/shard_sum.h"
#include "kernels/vector.h"
#include "models/wrappers/halp.h"
#include "parallel/team/step_report.h"
#include "world/mailbox/message_order.h"

namespace echelon {

namespace {

// A worker that never moves its weights itself has no optimizer's state.
Optim without_state() {
  Options nothing;
  Problems problems;
  OptionReader reader(nothing, problems);
  return {.rule = make_rule("sgd", reader), .clip = {}};
}

std::function<Optim()> optim_of(const EngineSettings& s, const Composition& composition) {
  if (!composition.workers_step()) return without_state;
  return composition.rule->own_optim() ? composition.rule->own_optim() : s.make_optim;
}

std::unique_ptr<LocalTrainer> make_local_trainer(const EngineSettings& s, const Composition& composition, World& world,
                                                 Cores& cores) {
  return std::make_unique<LocalTrainer>(ComputeSettings{.model = s.model,
                                                        .fields = s.fields,
                                                        .shards = s.shards,
                                                        .seed = s.seed,
                                                        .largest_shard = s.largest_shard,
                                                        .start = s.start,
                                                        .race = composition.exchange->traits().cores_race},
                                        optim_of(s, composition), world, cores);
}

}  // namespace

Replica::Replica(const EngineSettings& s, const Composition& composition, Team& team)
    : settings_(s),
      composition_(composition),
      team_(team),
      world_(team.world()),
      split_(s.plan && s.plan->splits_model() ? std::make_unique<SplitTrainer>(s, optim_of(s, composition), team)
                                              : nullptr),
      local_(split_ ? nullptr : make_local_trainer(s, composition, world_, team.cores())),
      trainer_(split_ ? static_cast<ReplicaTrainer&>(*split_) : *local_),
      peers_(split_ ? split_->peers() : team),
      waits_(team) {
  std::span<float>* const spans[] = {&model_, &averaged_};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::size_t bytes = trainer_.parameters().size_bytes();
    *spans[i] = s.plan && s.plan->offloads_parameters() ? (files_[i] = FileMemory(s.plan->offload, bytes)).as<float>()
                                                        : (buffers_[i] = Buffer(bytes)).as<float>();
  }
  times_.waiting_for.resize(static_cast<std::size_t>(world_.size()));
  trainer_.hooks().announce = true;
  const std::size_t most = trainer_.parameters().size_bytes() * 2 + (1 << 20);
  if (composition.uses_messages()) {
    mailbox_ = std::make_unique<Mailbox>(peers_.world(), most);
    if (speaks()) scheduler_ = std::make_unique<WorkScheduler>(peers_, *mailbox_, composition.work.common);
  }
  std::function<std::unique_ptr<ReplicaTrainer>(Cores&)> make_trainer;
  if (!split_)
    make_trainer = [this](Cores& cores) { return make_local_trainer(settings_, composition_, world_, cores); };
  exchange_ = composition.exchange->make(
      {.world = &peers_.world(),
       .team = &peers_,
       .mailbox = mailbox_.get(),
       .trainer = &trainer_,
       .rule = composition.rule.get(),
       .codec = composition.codec,
       .codec_choice = composition.codec_choice,
       .sync = composition.sync.get(),
       .when = composition.when,
       .order = composition.order,
       .make_optim = s.make_optim,
       .seed = s.seed,
       .batch = static_cast<std::size_t>(s.largest_shard) * static_cast<std::size_t>(s.shards * replicas()),
       .make_trainer = std::move(make_trainer)});
  if (s.byzantine.count > 0) liar_ = std::make_unique<Liar>(s.byzantine, peers_, s.seed, trainer_.parameters().size());
  if (composition.sync->traits().hands_in_early)
    trainer_.hooks().keep_going = [this] { return exchange_->keep_going(); };
  states_ = std::make_unique<ReplicaState>(team, own_state());
  read_model();
}

Replica::~Replica() = default;

bool Replica::follow(MessageOrder& order) {
  if (!mailbox_) return false;
  order_ = &order;
  mailbox_->follow(order);
  return true;
}

// Whoever begins again was asked then what it was asked then.
bool Replica::asked_to_stop(const StepRange& range) {
  const bool asked = range.asks_to_stop() || (order_ && order_->is_nearly_full());
  return order_ ? order_->learn(MessageOrder::stop_channel, asked) != 0 : asked;
}

void Replica::close() {
  if (!mailbox_) return;
  world_.set_status("the end of the messages");
  mailbox_->close();
}

void Replica::adapt(data::LoaderOptions& options) const {
  options.shards = static_cast<std::uint64_t>(settings_.shards);
  if (split_) split_->adapt(options);
  options.parts = static_cast<std::uint64_t>(replicas());
  options.part = static_cast<std::uint64_t>(part());
  if (composition_.work.common) options.prefetch = 0;  // nobody knows yet whose the next part will be
}

When Replica::when() const {
  When p = composition_.when;
  p.tau = exchange_->period(p.tau);
  return p;
}

// What a rank of a split replica has waited for other stages until the step's gradient was there.
void Replica::count_waits_for_stages(double seconds) {
  RankTimes tasks{.waiting_for = std::move(times_.waiting_for)};
  waits_.end(seconds, tasks);
  times_.compute += tasks.exchange;  // what was no wait
  times_.waiting_for = std::move(tasks.waiting_for);
  waits_.begin();
}

StepInfo Replica::info_of(const StepRange& range, const WorkItem& item, const data::Batch& batch,
                          std::int64_t clock) const {
  const bool due = when().due(
      clock, Stream({settings_.seed, static_cast<std::uint32_t>(clock),
                     composition_.uses_messages() ? static_cast<std::uint32_t>(part()) : 0, stream_layer("exchange")}));
  return {.step = item.step,
          .clock = clock,
          .lr = range.lr(item.step),
          .share = static_cast<double>(batch.samples()) / static_cast<double>(batch.global_samples()),
          .epoch = range.epoch(item.step),
          .batch = batch.global_samples(),
          .samples = batch.samples(),
          .due = due};
}

// Not past the next exchange. Liars, and statistics on which replicas agree, are of single steps.
std::int64_t Replica::steps_at_once(const StepRange& range, std::int64_t step) const {
  if (liar_ || models::is_bit_centred(*settings_.model)) return 1;
  const std::int64_t tau = when().tau;
  return std::min({exchange_->steps_side_by_side(), range.to - step, tau - clock_ % tau});
}

StepResult Replica::do_steps(const StepRange& range, std::int64_t step, std::int64_t count) {
  world_.set_status("steps of several learners");
  trainer_.hooks().slowness = slowness(settings_.stragglers, world_.rank(), world_.size(), step, settings_.seed);
  waits_.begin();
  const double begin = world_.now();
  const StepResult result = exchange_->make_steps(count, [&](std::int64_t i) {
    const data::Batch& batch =
        range.loader->at(static_cast<std::uint64_t>(step + i), static_cast<std::uint64_t>(part()));
    return StepInput{info_of(range, {step + i, part()}, batch, clock_ + i), &batch};
  });
  const double end = world_.now();
  clock_ += count;
  count_waits_for_stages(end - begin);
  trainer_.hooks().watch.span({"step", begin, end});
  return result;
}

StepResult Replica::do_step(const StepRange& range, const WorkItem& item) {
  world_.set_status("reading the batch");
  const data::Batch& batch =
      range.loader->at(static_cast<std::uint64_t>(item.step), static_cast<std::uint64_t>(item.part));
  const auto samples = static_cast<double>(batch.samples());
  StepInfo info = info_of(range, item, batch, clock_);
  trainer_.hooks().slowness = slowness(settings_.stragglers, world_.rank(), world_.size(), item.step, settings_.seed);
  waits_.begin();
  const double begin = world_.now(), waited = trainer_.waited_for_weights();
  exchange_->before_step(info);
  const double ready = world_.now();
  if (split_) split_->ask_to_stop(asked_to_stop(range));
  const StepResult result = trainer_.compute(static_cast<std::uint64_t>(item.step), batch, std::max(1.0, samples));
  const double computed = world_.now();
  if (liar_) liar_->change(trainer_.gradient(), trainer_.segments(), item.step);
  if (split_) count_waits_for_stages(computed - begin);
  if (samples > 0) info.done = static_cast<double>(result.samples) / samples;
  info.share *= info.done;
  const RuleTraits rule = composition_.rule->traits();
  if (rule.quantity == RuleTraits::Quantity::gradient) {
    const double part = info.due ? exchange_->exchange(info) : info.share;
    if (part > 0)
      trainer_.update(static_cast<std::uint64_t>(clock_), info.lr * part);
    else
      trainer_.move_statistics();
  } else {
    exchange_->on_gradient();
    trainer_.update(static_cast<std::uint64_t>(clock_), info.lr);
    if (info.due) exchange_->exchange(info);
  }
  exchange_->after_step(info);
  const double end = world_.now(), for_weights = trainer_.waited_for_weights() - waited;
  if (!split_) times_.compute += computed - ready - for_weights;
  waits_.end(split_ ? end - computed : end - begin - (computed - ready) + for_weights, times_);
  if (ready > begin) trainer_.hooks().watch.span({"exchange before a step", begin, ready, true});
  trainer_.hooks().watch.span({"exchange and update", computed, end, true});
  trainer_.hooks().watch.span({"step", begin, end});
  ++clock_;
  if (const std::int64_t missed = scheduler_ ? exchange_->missed_steps() : 0; missed > 0) {
    clock_ += missed;
    scheduler_->skip_to(item.step + 1 + missed);
  }
  return result;
}

Reached Replica::run(const StepRange& range) {
  const double begin = world_.now();
  std::int64_t reached = range.to;
  if (range.enough > 0) {  // else the epoch has all the samples that the system wants
    round_start_ = world_.sent()->bytes;
    exchange_->begin_round();
    reached = composition_.uses_messages() ? run_at_own_pace(range) : run_in_lockstep(range);
    end_round();
  }
  if (range.on_span) range.on_span({"round", begin, world_.now()});
  return {reached, reached < range.to};
}

void Replica::end_round() {
  world_.set_status("the end of a round");
  waits_.begin();
  const double begin = world_.now();
  exchange_->drain();
  const double end = world_.now();
  waits_.end(end - begin, times_);
  trainer_.hooks().watch.span({"exchange at the end of a round", begin, end, true});
  own_bytes_ += static_cast<double>(world_.sent()->bytes - round_start_);
  bytes_ = 0;
  for (const double sent : team_.all_gather_struct(own_bytes_)) bytes_ += sent;
}

double Replica::sent_since_start() const {
  return own_bytes_ + static_cast<double>(world_.sent()->bytes - round_start_);
}

// Ranks report their losses, and whether they ask to stop, when they exchange.
std::int64_t Replica::run_in_lockstep(const StepRange& range) {
  std::int64_t reported = range.from;
  StepReport own;
  for (std::int64_t first = range.from; first < range.to;) {
    const std::int64_t at_once = steps_at_once(range, first), step = first + at_once - 1;
    const StepResult r = at_once > 1 ? do_steps(range, first, at_once) : do_step(range, {first, part()});
    agree_on_statistics(step);
    first += at_once;
    if (speaks()) {
      own.loss += r.loss * static_cast<double>(r.terms);
      own.correct += r.correct;
      own.terms += static_cast<double>(r.terms), own.samples += static_cast<double>(r.samples);
    }
    if (clock_ % steps_between_reports(when()) != 0 && step + 1 < range.to) continue;
    own.bytes = sent_since_start(), own.stop_requests = range.asks_to_stop();
    StepReport all;
    for (const StepReport& report : team_.all_gather_struct(own)) all += report;
    const StepResult result{.loss = all.terms > 0 ? all.loss / all.terms : 0,
                            .correct = all.correct,
                            .samples = static_cast<std::int64_t>(all.samples),
                            .terms = static_cast<std::int64_t>(all.terms),
                            .stop = all.stop_requests > 0};
    range.on_progress({step + 1, result, all.bytes});
    reported = step + 1, own = {};
    if (result.stop) break;
  }
  return reported;
}

// The rank that speaks for a replica asks for its work.
SplitTrainer::Agreed Replica::next_item() {
  SplitTrainer::Agreed said;
  if (scheduler_) said.item = scheduler_->next();
  if (scheduler_ && !said.item) said.reached = scheduler_->end();
  return split_ ? split_->agree(said) : said;
}

std::int64_t Replica::run_at_own_pace(const StepRange& range) {
  if (scheduler_) scheduler_->begin(range.from, range.to, range.enough);
  WorkTotals reported;
  auto report = [&](const WorkTotals& now) {
    if (world_.rank() != 0 || now.pieces - reported.pieces < 1) return;
    const double terms = now.terms - reported.terms;
    const StepResult r{.loss = terms > 0 ? (now.loss - reported.loss) / terms : 0,
                       .correct = now.correct - reported.correct,
                       .samples = static_cast<std::int64_t>(now.samples - reported.samples),
                       .terms = static_cast<std::int64_t>(terms)};
    const auto steps = static_cast<std::int64_t>(now.pieces / replicas());
    // The scheduler does not know yet what everybody sent at the end of the last round.
    range.on_progress({std::min(range.from + steps, range.to), r, std::max(now.bytes, bytes_)});
    reported = now;
  };
  WorkTotals own;  // of the whole round
  SplitTrainer::Agreed next;
  while ((next = next_item()).item) {
    const StepResult r = do_step(range, *next.item);
    if (!scheduler_) continue;
    WorkTotals piece{.pieces = 1,
                     .loss = r.loss * static_cast<double>(r.terms),
                     .correct = r.correct,
                     .terms = static_cast<double>(r.terms),
                     .samples = static_cast<double>(r.samples)};
    own += piece;
    piece.bytes = sent_since_start();
    scheduler_->done(piece, asked_to_stop(range) || r.stop);
    report(scheduler_->totals());
  }
  waits_.begin();
  const double left = world_.now();
  exchange_->leave();
  waits_.end(world_.now() - left, times_);
  // What the scheduler did not know yet.
  if (scheduler_) own.pieces += static_cast<double>(scheduler_->skipped());
  own.bytes = sent_since_start();
  WorkTotals all;
  for (const WorkTotals& totals : team_.all_gather_struct(own)) all += totals;
  report(all);
  return next.reached;
}

// values = the mean over all replicas, weighted. In the fixed tree: whatever the world and its links, the same bits.
void Replica::average(std::span<float> values, double weight) {
  if (replicas() == 1) return;
  const std::vector<double> weights = peers_.all_gather_struct(weight);
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  kernels::scale(values.data(), values.data(), static_cast<float>(weight / total), values.size());
  all_reduce_members(peers_.group(), values);
}

// HALP's full gradient, when it has been gathered (models/wrappers/halp.h).
void Replica::agree_on_statistics(std::int64_t step) {
  if (!models::agrees_after(*settings_.model, step)) return;
  for (const auto& e : trainer_.table().entries())
    if (models::is_full_gradient(e.parameter.name)) average(trainer_.parameters().subspan(e.offset, e.size), 1);
}

void Replica::read_model() {
  const std::span<float> model = model_, own = trainer_.parameters(), mean = averaged_;
  const RuleTraits rule = composition_.rule->traits();
  std::ranges::copy(own, mean.begin());
  const bool statistics = std::ranges::any_of(trainer_.segments(), &TrainedSpan::statistic);
  const bool differ = rule.model == RuleTraits::Model::mean || composition_.exchange->traits().replicas_differ;
  if (differ || statistics) average(mean, exchange_->peer_weight());
  std::ranges::copy(differ ? mean : own, model.begin());
  if (rule.model == RuleTraits::Model::shared) exchange_->read_model(model);
  for (const TrainedSpan& s : trainer_.segments())
    if (s.statistic) kernels::copy(model.data() + s.offset, mean.data() + s.offset, s.size);
  if (split_) split_->read_model(model);
}

std::vector<StateSpan> Replica::own_state() {
  std::vector<StateSpan> all{as_state("weights", trainer_.parameters())};
  add_states(all, "own ", trainer_.state());
  add_states(all, "", exchange_->state());
  all.push_back(as_state("clock", clock_));
  return all;
}

void Replica::scatter() {
  states_->scatter(own_state());
  read_model();
}

}  // namespace echelon
