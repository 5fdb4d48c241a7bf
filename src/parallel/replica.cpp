#include "parallel/replica.h"

#include <algorithm>
#include <numeric>

#include "collective/collectives.h"
#include "collective/shard_sum.h"
#include "kernels/vector.h"
#include "parallel/team/step_report.h"
#include "world/wrappers/solo.h"

namespace echelon {

Replica::Replica(const ReplicaSettings& settings, const Composition& composition, MeteredWorld& world, Team& team)
    : settings_(settings),
      composition_(composition),
      world_(world),
      team_(team),
      solo_(make_solo(world)),
      lone_(*solo_, team.cores()),
      trainer_(std::make_unique<Trainer>(
          *settings.model, composition.rule->own_optim() ? composition.rule->own_optim() : settings.make_optim,
          settings.fields, settings.shards, settings.seed, lone_, settings.largest_slice)),
      model_(trainer_->parameters().size_bytes()),
      averaged_(trainer_->parameters().size_bytes()),
      waits_before_(static_cast<std::size_t>(world.size())) {
  times_.waiting_for.resize(waits_before_.size());
  trainer_->announce();
  const std::size_t most = trainer_->parameters().size_bytes() * 2 + (1 << 20);
  if (composition.uses_messages()) {
    mailbox_ = std::make_unique<Mailbox>(world, most);
    scheduler_ = std::make_unique<WorkScheduler>(team, *mailbox_, composition.work.common);
  }
  exchange_ = composition.exchange->make({.world = &world,
                                          .team = &team,
                                          .mailbox = mailbox_.get(),
                                          .trainer = trainer_.get(),
                                          .rule = composition.rule.get(),
                                          .codec = composition.codec,
                                          .codec_choice = composition.codec_choice,
                                          .sync = composition.sync.get(),
                                          .when = composition.when,
                                          .order = composition.order,
                                          .make_optim = settings.make_optim,
                                          .seed = settings.seed});
  if (composition.sync->traits().hands_in_early)
    trainer_->ask_before_shards([this] { return exchange_->keep_going(); });
  std::size_t bytes = 0;
  for (const StateSpan& s : own_state()) bytes += s.bytes.size();
  std::vector<double> sizes(static_cast<std::size_t>(world.size()));
  sizes[static_cast<std::size_t>(world.rank())] = static_cast<double>(bytes);
  team.share(sizes, std::vector<std::size_t>(sizes.size(), 1));
  std::size_t all = 0;
  for (double size : sizes)
    state_sizes_.push_back(static_cast<std::int64_t>(size)), all += static_cast<std::size_t>(size);
  blobs_ = Buffer(world.rank() == 0 ? all : bytes);
  read_model();
}

Replica::~Replica() = default;

void Replica::close() {
  if (!mailbox_) return;
  world_.set_status("the end of the messages");
  mailbox_->close();
}

When Replica::when() const {
  When p = composition_.when;
  p.tau = exchange_->period(p.tau);
  return p;
}

StepResult Replica::do_step(const ReplicaRound& round, const WorkItem& item) {
  const data::Batch& batch =
      round.loader->at(static_cast<std::uint64_t>(item.step), static_cast<std::uint64_t>(item.part));
  const auto samples = static_cast<double>(batch.samples());
  const bool due = when().due(
      clock_,
      Stream({settings_.seed, static_cast<std::uint32_t>(clock_),
              composition_.uses_messages() ? static_cast<std::uint32_t>(world_.rank()) : 0, stream_layer("exchange")}));
  StepInfo info{.step = item.step,
                .clock = clock_,
                .lr = round.lr(item.step),
                .share = samples / static_cast<double>(batch.global_samples()),
                .epoch = round.epoch(item.step),
                .batch = batch.global_samples(),
                .samples = batch.samples(),
                .due = due};
  trainer_->slow_down(slowness(settings_.stragglers, world_.rank(), world_.size(), item.step, settings_.seed));
  begin_waits();
  const double begin = world_.now(), waited = trainer_->waited_for_weights();
  exchange_->before_step(info);
  const double ready = world_.now();
  const StepResult result = trainer_->compute(static_cast<std::uint64_t>(item.step), batch, std::max(1.0, samples));
  const double computed = world_.now();
  if (samples > 0) info.done = static_cast<double>(result.samples) / samples;
  info.share *= info.done;
  const RuleTraits rule = composition_.rule->traits();
  if (rule.quantity == RuleTraits::Quantity::gradient) {
    const double part = due ? exchange_->exchange(info) : info.share;
    if (part > 0)
      trainer_->update(static_cast<std::uint64_t>(clock_), info.lr * part);
    else
      trainer_->move_statistics();
  } else {
    exchange_->on_gradient();
    trainer_->update(static_cast<std::uint64_t>(clock_), info.lr);
    if (due) exchange_->exchange(info);
  }
  exchange_->after_step(info);
  const double end = world_.now(), for_weights = trainer_->waited_for_weights() - waited;
  times_.compute += computed - ready - for_weights;
  end_waits(end - begin - (computed - ready) + for_weights);
  trainer_->tell_watch("exchange and update", computed, end);
  trainer_->tell_watch("step", begin, end);
  ++clock_;
  if (const std::int64_t missed = scheduler_ ? exchange_->missed_steps() : 0; missed > 0) {
    clock_ += missed;
    scheduler_->skip_to(item.step + 1 + missed);
  }
  return result;
}

std::int64_t Replica::run(const ReplicaRound& round) {
  round_start_ = world_.sent().bytes;
  const std::int64_t reached = scheduler_ ? run_at_own_pace(round) : run_in_lockstep(round);
  world_.set_status("the end of a round");
  begin_waits();
  const double begin = world_.now();
  exchange_->drain();
  end_waits(world_.now() - begin);
  own_bytes_ += static_cast<double>(world_.sent().bytes - round_start_);
  std::vector<double> sent(static_cast<std::size_t>(world_.size()));
  sent[static_cast<std::size_t>(world_.rank())] = own_bytes_;
  team_.share(sent, std::vector<std::size_t>(sent.size(), 1));
  bytes_ = 0;
  for (double b : sent) bytes_ += b;
  return reached;
}

void Replica::begin_waits() {
  for (Rank r = 0; r < world_.size(); ++r) waits_before_[static_cast<std::size_t>(r)] = team_.waited_for_messages(r);
}

// An exchange has taken so long. What tasks beside this one have waited while it computed does not count: their waits
// are cut down to what was seen here.
void Replica::end_waits(double seconds) {
  double waits = 0;
  for (Rank r = 0; r < world_.size(); ++r) {
    double& wait = waits_before_[static_cast<std::size_t>(r)];
    wait = team_.waited_for_messages(r) - wait;
    waits += wait;
  }
  const double share = waits > seconds ? seconds / waits : 1;
  for (std::size_t r = 0; r < waits_before_.size(); ++r) times_.waiting_for[r] += share * waits_before_[r];
  times_.exchange += std::max(0.0, seconds - waits);
}

double Replica::sent_since_start() const {
  return own_bytes_ + static_cast<double>(world_.sent().bytes - round_start_);
}

// Ranks hear of each other's losses, and wishes to stop, when they exchange.
std::int64_t Replica::run_in_lockstep(const ReplicaRound& round) {
  constexpr std::size_t each = report_numbers;
  const auto ranks = static_cast<std::size_t>(world_.size());
  std::vector<double> reports(ranks * each);
  const std::vector<std::size_t> counts(ranks, each);
  const std::span own = std::span(reports).subspan(static_cast<std::size_t>(world_.rank()) * each, each);
  std::int64_t told = round.from;
  StepResult since;
  double loss = 0;
  for (std::int64_t step = round.from; step < round.to; ++step) {
    const StepResult r = do_step(round, {step, world_.rank()});
    loss += r.loss * static_cast<double>(r.terms);
    since.correct += r.correct, since.terms += r.terms, since.samples += r.samples;
    if (!news_are_due(when(), clock_) && step + 1 < round.to) continue;
    own[0] = loss, own[1] = since.correct, own[2] = static_cast<double>(since.terms);
    own[3] = static_cast<double>(since.samples), own[4] = sent_since_start(), own[5] = round.wants_to_stop();
    team_.share(reports, counts);
    double sums[each] = {};
    for (std::size_t i = 0; i < reports.size(); ++i) sums[i % each] += reports[i];
    StepResult all{.loss = sums[2] > 0 ? sums[0] / sums[2] : 0,
                   .correct = sums[1],
                   .samples = static_cast<std::int64_t>(sums[3]),
                   .terms = static_cast<std::int64_t>(sums[2]),
                   .stop = sums[5] > 0};
    round.on_progress(step + 1, all, sums[4]);
    told = step + 1, since = {}, loss = 0;
    if (all.stop) break;
  }
  return told;
}

std::int64_t Replica::run_at_own_pace(const ReplicaRound& round) {
  scheduler_->begin(round.from, round.to, round.enough);
  WorkTotals told;
  auto tell = [&](const WorkTotals& now) {
    if (world_.rank() != 0 || now.pieces - told.pieces < 1) return;
    const double terms = now.terms - told.terms;
    StepResult r{.loss = terms > 0 ? (now.loss - told.loss) / terms : 0,
                 .correct = now.correct - told.correct,
                 .samples = static_cast<std::int64_t>(now.samples - told.samples),
                 .terms = static_cast<std::int64_t>(terms)};
    const auto steps = static_cast<std::int64_t>(now.pieces / world_.size());
    // The scheduler has not heard yet what everybody sent at the end of the last round.
    round.on_progress(std::min(round.from + steps, round.to), r, std::max(now.bytes, bytes_));
    told = now;
  };
  WorkTotals mine;  // of the whole round
  while (const auto item = scheduler_->next()) {
    const StepResult r = do_step(round, *item);
    const WorkTotals piece{.pieces = 1,
                           .loss = r.loss * static_cast<double>(r.terms),
                           .correct = r.correct,
                           .terms = static_cast<double>(r.terms),
                           .samples = static_cast<double>(r.samples),
                           .bytes = sent_since_start()};
    mine.pieces += 1, mine.loss += piece.loss, mine.correct += piece.correct, mine.terms += piece.terms;
    mine.samples += piece.samples;
    scheduler_->done(piece, round.wants_to_stop());
    tell(scheduler_->totals());
  }
  begin_waits();
  const double left = world_.now();
  exchange_->leave();
  end_waits(world_.now() - left);
  // What the scheduler had not heard of yet.
  constexpr std::size_t each = 6;
  const auto ranks = static_cast<std::size_t>(world_.size());
  std::vector<double> all(ranks * each);
  const std::span own = std::span(all).subspan(static_cast<std::size_t>(world_.rank()) * each, each);
  own[0] = mine.pieces + static_cast<double>(scheduler_->skipped()), own[1] = mine.loss, own[2] = mine.correct,
  own[3] = mine.terms, own[4] = mine.samples;
  own[5] = sent_since_start();
  team_.share(all, std::vector<std::size_t>(ranks, each));
  double sums[each] = {};
  for (std::size_t i = 0; i < all.size(); ++i) sums[i % each] += all[i];
  tell(
      {.pieces = sums[0], .loss = sums[1], .correct = sums[2], .terms = sums[3], .samples = sums[4], .bytes = sums[5]});
  return scheduler_->end();
}

// values = the mean over all ranks, weighted. In the fixed tree: whatever the world and its links, the same bits.
void Replica::average(std::span<float> values, double weight) {
  if (world_.size() == 1) return;
  std::vector<double> weights(static_cast<std::size_t>(world_.size()));
  weights[static_cast<std::size_t>(world_.rank())] = weight;
  team_.share(weights, std::vector<std::size_t>(weights.size(), 1));
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  kernels::scale(values.data(), values.data(), static_cast<float>(weight / total), values.size());
  all_reduce_members(team_.group(), values);
}

void Replica::read_model() {
  const std::span<float> model = model_.as<float>(), own = trainer_->parameters(), mean = averaged_.as<float>();
  const RuleTraits rule = composition_.rule->traits();
  std::ranges::copy(own, mean.begin());
  const bool statistics = std::ranges::any_of(trainer_->segments(), &TrainedSpan::statistic);
  const bool differ = rule.model == RuleTraits::Model::mean || composition_.exchange->traits().replicas_differ;
  if (differ || statistics) average(mean, exchange_->peer_weight());
  std::ranges::copy(differ ? mean : own, model.begin());
  if (rule.model == RuleTraits::Model::shared) exchange_->read_model(model);
  for (const TrainedSpan& s : trainer_->segments())
    if (s.statistic) kernels::copy(model.data() + s.offset, mean.data() + s.offset, s.size);
}

std::vector<StateSpan> Replica::own_state() {
  std::vector<StateSpan> all{as_state("weights", trainer_->parameters())};
  add_states(all, "own ", trainer_->state());
  add_states(all, "", exchange_->state());
  all.push_back(as_state("clock", clock_));
  return all;
}

std::vector<StateSpan> Replica::state() {
  std::vector<StateSpan> all;
  std::size_t at = 0;
  for (std::size_t r = 0; r < state_sizes_.size(); ++r) {
    const auto size = static_cast<std::size_t>(state_sizes_[r]);
    all.push_back({fmt::format("replica.{}", r), blobs_.as<std::byte>().subspan(at, size)});
    at += size;
  }
  return all;
}

void Replica::gather() {
  std::size_t at = 0;
  const std::span<std::byte> mine = blobs_.as<std::byte>();  // rank 0's own is the first
  for (const StateSpan& s : own_state()) {
    std::ranges::copy(s.bytes, mine.data() + at);  // it may be empty, which memcpy may not be told
    at += s.bytes.size();
  }
  move_blobs(true);
}

void Replica::scatter() {
  move_blobs(false);
  std::size_t at = 0;
  const std::span<const std::byte> mine = blobs_.as<std::byte>();
  for (const StateSpan& s : own_state()) {
    std::ranges::copy(mine.subspan(at, s.bytes.size()), s.bytes.data());
    at += s.bytes.size();
  }
  read_model();
}

// Every rank's part to rank 0, or back.
void Replica::move_blobs(bool to_first) {
  if (world_.size() == 1) return;
  const auto ranks = static_cast<std::size_t>(world_.size());
  const auto own = static_cast<std::size_t>(world_.rank());
  std::vector<Range> out(ranks), in(ranks);
  const std::span<std::byte> all = blobs_.as<std::byte>();
  if (own == 0) {
    std::size_t at = 0;
    for (std::size_t r = 0; r < ranks; ++r) {
      const auto size = static_cast<std::size_t>(state_sizes_[r]);
      if (r > 0) (to_first ? in : out)[r] = {at, at + size};
      at += size;
    }
  } else {
    (to_first ? out : in)[0] = {0, all.size()};
  }
  const bool sends = (own == 0) != to_first;
  const std::span<std::byte> none;
  all_to_all(team_.group(), const_typed_span(std::span<const std::byte>(sends ? all : none)), out,
             typed_span(sends ? none : all), in, "state");
}

}  // namespace echelon
