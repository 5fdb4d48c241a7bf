// Contributions that are merged as they come. A worker that asks for parameters is answered as soon as these have seen
// what it must have seen (Sync::must_have_seen) and the sync's gate lets it (Sync::make_gate).

#include <algorithm>
#include <optional>

#include "parallel/server/budgeted_answers.h"
#include "parallel/server/merger.h"
#include "parallel/server/relay.h"

namespace echelon::exchanges {

namespace {

struct Asking {                      // about one key
  std::vector<std::int64_t> wanted;  // by worker: steps that its answer must have seen; -1: it awaits none
  std::vector<std::int64_t> warm;    // by worker: updates that it must have seen; 0: it awaits none
  std::unique_ptr<AnswerGate> gate;  // null: there is none
};

class ArrivalMerger : public Merger {
 public:
  explicit ArrivalMerger(const MergerParts& parts);

  void take(ShardKey& key, Message& message, bool seen) override;
  void check_waiting() override {
    if (budgeted_) budgeted_->pause();
    for (ShardKey& key : core_.keys) answer_those_who_may(key);
  }
  double most_moved() const override {
    double most = 0;
    for (const Asking& a : asking_)
      if (a.gate) most = std::max(most, a.gate->most_moved());
    return most;
  }
  // The first worker, while others wait for its warm start.
  Rank latecomer(const ShardKey& key) const override {
    const std::vector<std::int64_t>& warm = asking_[key.number - core_.first()].warm;
    const bool waits = std::ranges::any_of(warm, [](std::int64_t updates) { return updates > 0; });
    return waits ? core_.writers.list().front().rank : -1;
  }
  std::vector<StateSpan> state() override {
    std::vector<StateSpan> all;
    for (std::size_t i = 0; i < asking_.size(); ++i)
      if (asking_[i].gate) add_states(all, fmt::format("gate {} ", core_.keys[i].number), asking_[i].gate->state());
    if (budgeted_) add_states(all, "", budgeted_->state());
    return all;
  }

 private:
  Asking& asking(const ShardKey& key) { return asking_[key.number - core_.first()]; }
  std::int64_t must_have_seen(const Message& message) const {
    return std::max<std::int64_t>(0, core_.parts.sync->must_have_seen(message.head.clock + 1));
  }
  void merge(ShardKey& key, const Message& message);
  void answer_those_who_may(ShardKey& key);
  bool may_answer(const ShardKey& key, Rank worker);
  void answer(ShardKey& key, Rank worker, std::span<const std::byte> bytes);

  ShardCore& core_;
  ShardReplication& replication_;
  AnswerSender& answers_;
  bool gradients_, sends_unasked_;
  std::vector<Asking> asking_;               // by key
  std::optional<BudgetedAnswers> budgeted_;  // where fresh parameters are sent by how much they matter
};

ArrivalMerger::ArrivalMerger(const MergerParts& parts)
    : core_(parts.core),
      replication_(parts.replication),
      answers_(parts.answers),
      gradients_(core_.parts.rule->traits().quantity == RuleTraits::Quantity::gradient),
      sends_unasked_(core_.parts.sync->traits().sends_unasked) {
  const int workers = core_.parts.workers();
  if (sends_unasked_ && core_.parts.order.by_magnitude) budgeted_.emplace(core_);
  for (const ShardKey& key : core_.keys)
    asking_.push_back({.wanted = std::vector<std::int64_t>(static_cast<std::size_t>(workers), -1),
                       .warm = std::vector<std::int64_t>(static_cast<std::size_t>(workers)),
                       .gate = core_.parts.sync->make_gate(workers, key.shared->model())});
}

void ArrivalMerger::take(ShardKey& key, Message& message, bool seen) {
  const auto from = static_cast<std::size_t>(message.from);
  switch (message.head.kind) {
    case push:
    case push_answer:
      if (key.number == core_.first() && !seen) core_.speeds.pushes(message.from, core_.parts.world->now());
      if (!seen) merge(key, message);
      if (message.head.kind == push_answer) asking(key).wanted[from] = must_have_seen(message);
      break;
    case await:
      asking(key).wanted[from] = must_have_seen(message);
      key.awaited[from] = message.head.clock + 1;
      break;
    case warm: asking(key).warm[from] = message.head.clock; break;
    default: fail_unknown_type(message, "a server");
  }
  answer_those_who_may(key);
}

void ArrivalMerger::merge(ShardKey& key, const Message& message) {
  const std::span<const float> values = key.decoder->read(message);
  // A relay's sum says of how many contributions it is, and the sum of the versions that they are of.
  const bool summed = core_.writers.reply_tag(message.from) == ServerRelay::relay_tag;
  const std::int64_t count = summed ? message.head.clock + 1 : 1, before = core_.oldest(key);
  const double staleness = static_cast<double>(key.version) * static_cast<double>(count) -
                           static_cast<double>(message.head.second);  // of all of them together
  if (staleness < 0 || count > core_.parts.workers())
    fail("rank {} has read a version of key {} that does not exist", message.from, key.number);
  core_.counts.lead = std::max(core_.counts.lead, static_cast<double>(message.head.clock - before));
  replication_.before_update(key);
  if (budgeted_) budgeted_->before_update(key);
  key.shared->absorb(values, {.from = message.from,
                              .clock = message.head.clock,
                              .staleness = staleness / static_cast<double>(count),
                              .contributions = count,
                              .lr = gradients_ ? message.head.number : 0,
                              .share = gradients_ ? 1 : message.head.number,
                              .speed = core_.speeds.of(message.from)});
  core_.counts.staleness += staleness, core_.counts.contributions += static_cast<double>(count);
  if (!key.shared->waits_for_more()) core_.counts.updates += 1, ++key.version;
  std::int64_t& clock = key.clocks[static_cast<std::size_t>(message.from)];
  clock = summed ? clock + count : message.head.clock + 1;
  replication_.after_update(key);
  if (budgeted_) {
    budgeted_->after_update(key);
    budgeted_->for_each_that_goes([&](ShardKey& k, Rank to) { answer(k, to, answers_.encoded(k)); });
    return;
  }
  if (!sends_unasked_ || core_.oldest(key) == before) return;
  const std::span<const std::byte> bytes = answers_.encoded(key);
  for (const Address& a : core_.writers.list()) answer(key, a.rank, bytes);
}

void ArrivalMerger::answer_those_who_may(ShardKey& key) {
  for (bool answered = true; answered;) {  // an answer to the slowest worker may let others go on
    answered = false;
    for (const Address& a : core_.writers.list()) {
      if (!may_answer(key, a.rank)) continue;
      const auto r = static_cast<std::size_t>(a.rank);
      asking(key).wanted[r] = -1, asking(key).warm[r] = 0;
      core_.speeds.begins(a.rank, core_.parts.world->now());
      answer(key, a.rank, answers_.encoded(key));
      answered = true;
    }
  }
}

bool ArrivalMerger::may_answer(const ShardKey& key, Rank worker) {
  const Asking& ask = asking(key);
  const auto r = static_cast<std::size_t>(worker);
  const bool first_trains = !core_.writers.is_gone(core_.writers.list().front().rank);
  const bool warmed = ask.warm[r] > 0 && (key.version >= ask.warm[r] || !first_trains);
  const bool asked = ask.wanted[r] >= 0 && core_.oldest(key) >= ask.wanted[r] && !replication_.holds_answers(key);
  if (!warmed && !asked) return false;
  if (!ask.gate) return true;
  return ask.gate->may_answer(worker, {core_.writers.present(), key.clocks}, key.shared->model());
}

void ArrivalMerger::answer(ShardKey& key, Rank worker, std::span<const std::byte> bytes) {
  if (AnswerGate* gate = asking(key).gate.get()) gate->was_answered(worker, key.shared->model());
  if (budgeted_) budgeted_->sent(key, worker);
  answers_.send(key, worker, core_.oldest(key), bytes);
}

}  // namespace

std::unique_ptr<Merger> make_arrival_merger(const MergerParts& parts) { return std::make_unique<ArrivalMerger>(parts); }

}  // namespace echelon::exchanges
