#include "parallel/server/client.h"

#include <algorithm>

#include "parallel/rules/common.h"
#include "parallel/server/sites.h"

namespace echelon::exchanges {

ServerClient::ServerClient(const ServerSettings& settings, ExchangeParts parts)
    : settings_(settings),
      parts_(std::move(parts)),
      keys_(cut_into_keys(settings, parts_)),
      seen_(keys_.size()),
      version_(keys_.size()),
      own_in_(keys_.size()),
      worker_(parts_.rule->make_worker(parts_.view())),
      answer_due_(keys_.size()),
      flush_due_(keys_.size()),
      wait_policy_(*parts_.team, *parts_.mailbox) {
  std::size_t largest = 0, most_bytes = 0;
  for (const Key& key : keys_) {
    encoders_.push_back(parts_.codec ? parts_.codec(parts_.pieces(key.range)) : nullptr);
    largest = std::max(largest, key.range.count());
    if (encoders_.back()) most_bytes = std::max(most_bytes, encoders_.back()->most_bytes());
  }
  contribution_ = Buffer(largest * sizeof(float));
  bytes_ = Buffer(most_bytes);
  if (parts_.when.n_push > 1) merged_ = Buffer(parts_.floats() * sizeof(float));
  const std::vector<int>& hosts = parts_.world->place().host;
  for (const Key& key : keys_) gates_.push_back(ServerRelay::gate(settings_.overlay, parts_.rank(), key.server, hosts));
  if (settings_.overlay.kind != Overlay::Kind::flat)
    relay_ = std::make_unique<ServerRelay>(parts_, settings_.overlay, keys_);
  if (parts_.sync.kind == Sync::Kind::approximate) sites_ = sites_of(parts_.sync, hosts);
  if (settings_.filters.any())
    for (const Key& key : keys_) filters_.emplace_back(settings_.filters, key.range.count());
  if (parts_.order.by_magnitude) {
    const auto bytes = static_cast<double>(parts_.floats() * sizeof(float));
    const auto most =
        static_cast<std::size_t>(parts_.order.rate * bytes / static_cast<double>(largest * sizeof(float)));
    budget_ = std::make_unique<SliceBudget>(keys_.size(), most, parts_.sync.staleness);
    pending_ = rules::zeros(parts_.floats());
    pending_rate_.assign(keys_.size(), 0), significance_.assign(keys_.size(), 0);
  }
  if (settings_.replicas > 1 && parts_.workers() > most_chain_ranks)
    fail("replicated servers work for up to {} workers", most_chain_ranks);
  lost_servers_.assign(keys_.size(), 0);
  if (settings_.replicas > 1) unanswered_.resize(keys_.size());
  if (settings_.factors) factors_ = std::make_unique<FactorPushes>(*parts_.trainer, keys_);
  make_shards();
  plan_overlap();
}

// This rank's own server, and the replicas of those before it in their chains.
void ServerClient::make_shards() {
  for (int p = 0; p < settings_.replicas; ++p) {
    const Rank head = (parts_.rank() - p + parts_.workers()) % parts_.workers();
    const auto theirs = [&](const Key& k) { return k.server == head; };
    const auto first = std::ranges::find_if(keys_, theirs);
    const auto count = std::ranges::count_if(keys_, theirs);
    shards_.push_back(nullptr);
    if (count == 0) continue;
    const auto at = static_cast<std::size_t>(first - keys_.begin());
    ServerPlace place{.first = at, .writers = writers(), .position = p, .replicas = settings_.replicas};
    place.filters = settings_.filters, place.factors = settings_.factors;
    for (const ServerSettings::Death& d : settings_.deaths)
      if (p == d.position && head == rank_of_server(settings_, d.server, parts_.workers())) place.dies_at = d.at;
    if (parts_.order.same_everywhere) place.order = answering_order(at, static_cast<std::size_t>(count));
    if (!sites_.empty()) place.peers = counterparts(sites_, parts_.rank());
    shards_.back() =
        std::make_unique<ServerShard>(parts_, std::span(keys_).subspan(at, static_cast<std::size_t>(count)), place);
  }
}

// Those who write to this rank's server: everybody, or its children in the overlay and its own worker.
std::vector<Address> ServerClient::writers() const {
  const Rank own = parts_.rank();
  std::vector<Address> list;
  if (settings_.overlay.kind == Overlay::Kind::flat) {
    for (Rank r = 0; r < parts_.workers(); ++r)
      if ((parts_.members.empty() || std::ranges::find(parts_.members, r) != parts_.members.end()) &&
          (sites_.empty() || sites_[static_cast<std::size_t>(r)] == sites_[static_cast<std::size_t>(own)]))
        list.push_back({r, worker_tag});
    return list;
  }
  const std::vector<int>& hosts = parts_.world->place().host;
  list.push_back({own, worker_tag});
  for (const Rank child : children_of(settings_.overlay, own, own, hosts))
    list.push_back(ServerRelay::reply_to(settings_.overlay, child, own, hosts));
  return list;
}

// Where to push: the first of the key's chain that has not lost its state, or the way there.
Address ServerClient::gate(std::size_t k) const {
  const int position = member_after(lost_servers_[k], -1, settings_.replicas);
  if (position == 0) return gates_[k];
  return {chain_rank(keys_[k].server, position, parts_.workers()), chain_tag(position)};
}

void ServerClient::before_step(const StepInfo& info) {
  if (factors_) factors_->begin(info.samples, parts_.sync.in_rounds() ? info.share : 1);
  if (parts_.when.warm_start > 0 && warm_ == 0) {  // everybody else begins with what the first worker has made
    if (parts_.rank() != 0) {
      for (std::uint32_t k = 0; k < keys_.size(); ++k)
        parts_.mailbox->post(keys_[k].server,
                             {.kind = warm, .tag = server_tag, .key = k, .clock = parts_.when.warm_start});
      expect_answers();
      wait_for_answers();
    }
    warm_ = 1;
  }
  if (parts_.sync.kind == Sync::Kind::essp) {
    Message message;
    while (parts_.mailbox->try_take(worker_tag, message)) take(message);
    const std::int64_t needed = must_have_seen(parts_.sync, info.clock);
    const double begin = parts_.world->now();
    while (seen() < needed) take_next();
    waited_ += parts_.world->now() - begin;
  }
  if (overlap_) begin_overlapped(info);
}

bool ServerClient::asks(const StepInfo& info) const {
  switch (parts_.sync.kind) {
    case Sync::Kind::essp: return false;
    case Sync::Kind::ssp: return seen() < must_have_seen(parts_.sync, info.clock + 1);
    default: return parts_.sync.in_rounds() || steps_ % parts_.when.n_fetch == 0;
  }
}

double ServerClient::exchange(const StepInfo& info) {
  if (!overlap_) ++steps_, asks_ = asks(info);
  epoch_ = info.epoch;
  parts_done_ += info.done, parts_count_ += 1, ages_ += static_cast<double>(info.clock - seen());
  missed_ = 0;
  if (parts_.sync.kind == Sync::Kind::soft) return exchange_softly(info);
  if (parts_.sync.kind == Sync::Kind::essp) own_steps_.begin(parts_.view().weights);
  if (overlap_ && overlap_->defers) {
    end_overlapped();
    return 0;
  }
  const std::int64_t round = round_;
  if (overlap_)
    end_overlapped();
  else
    push_or_pull(info);
  if (asks_ && parts_.sync.in_rounds()) missed_ = round_ - round - 1;
  if (parts_.rule->traits().local_step) return 1;
  return asks_ ? 0 : info.share;  // what it pushes, its own copy has to make too
}

void ServerClient::push_or_pull(const StepInfo& info) {
  if (parts_.when.n_push > 1) merge(info);
  if (budget_) {
    push_most_significant(info, asks_);
  } else if (steps_ % parts_.when.n_push == 0) {
    push_all(info, asks_);
  } else if (asks_) {
    for (std::uint32_t k = 0; k < keys_.size(); ++k)
      parts_.mailbox->post(keys_[k].server, {.kind = pull, .tag = server_tag, .key = k});
  }
  if (!asks_) return;
  expect_answers();
  wait_for_answers();
}

// A new contribution goes out when the last one has been merged; the worker never waits for that, unless it is late.
double ServerClient::exchange_softly(const StepInfo& info) {
  Message message;
  while (parts_.mailbox->try_take(worker_tag, message)) take(message);
  if (awaited_ > 0 && info.clock - pushed_at_ < parts_.sync.staleness) return 1;
  wait_for_answers();
  push_all(info, true);
  expect_answers();
  pushed_at_ = info.clock;
  return 1;
}

void ServerClient::after_step(const StepInfo& info) {
  if (parts_.sync.kind == Sync::Kind::essp) own_steps_.end(info.clock, parts_.view().weights);
}

bool ServerClient::keep_going() {
  Message message;
  while (parts_.mailbox->try_take(worker_tag, message)) take(message);
  return hand_in_ < round_;
}

void ServerClient::expect_answers() {
  awaited_ = static_cast<int>(keys_.size());
  std::ranges::fill(answer_due_, 1);
}

void ServerClient::wait_for_answers() {
  const double begin = parts_.world->now();
  while (awaited_ > 0) take_next();
  waited_ += parts_.world->now() - begin;
}

void ServerClient::take_next() {
  Message message;
  const auto whom = [this] { return latecomer(); };
  if (parts_.when.warm_start > 0 && warm_ == 0)
    wait_policy_.take_any_time(worker_tag, message, "with the weights of the warm start", whom);
  else
    wait_policy_.take(worker_tag, message, "with a server's answer", whom);
  take(message);
}

// Who keeps this worker waiting, as far as it can tell: the rank of a server that owes it something; if that is this
// one, whom the server waits for.
Rank ServerClient::latecomer() const {
  auto key = std::ranges::min_element(seen_) - seen_.begin();
  if (flushes_ > 0)
    key = std::ranges::find(flush_due_, 1) - flush_due_.begin();
  else if (awaited_ > 0)
    key = std::ranges::find(answer_due_, 1) - answer_due_.begin();
  const auto k = static_cast<std::size_t>(key);
  if (k >= keys_.size()) return -1;                                    // another site
  const int last = last_member(lost_servers_[k], settings_.replicas);  // it answers for its chain
  const Rank rank = settings_.replicas > 1 ? chain_rank(keys_[k].server, last, parts_.workers()) : gates_[k].rank;
  if (rank != parts_.rank()) return rank;
  if (settings_.replicas == 1 && gates_[k].tag == ServerRelay::relay_tag) return relay_->latecomer();
  return shards_[static_cast<std::size_t>(last)]->latecomer();
}

void ServerClient::take(Message& message) {
  switch (message.head.kind) {
    case flushed:
      if (message.head.key >= keys_.size())
        fail("rank {} has flushed key {}, which does not exist", message.from, message.head.key);
      if (!unanswered_.empty() && !is_flushed(message)) return;
      --flushes_, flush_due_[message.head.key] = 0;
      return;
    case lost: go_on_without(message); return;
    case hand_in: hand_in_ = std::max(hand_in_, message.head.clock); return;
    case answer: take_answer(message); return;
    default: fail("rank {} sent a worker a message of kind {}", message.from, message.head.kind);
  }
}

void ServerClient::take_answer(Message& message) {
  const std::uint32_t k = message.head.key;
  if (k >= keys_.size()) fail("rank {} answered about key {}, which does not exist", message.from, k);
  if (!unanswered_.empty()) {
    const bool everybodys = parts_.sync.in_rounds() || unanswered_[k].head.kind == await;
    const auto seen = everybodys ? message.head.clock : static_cast<std::int64_t>(message.head.number);
    if (!unanswered_[k].is_answered_by(seen)) return;  // a second answer to the same push
  }
  const Range range = keys_[k].range;
  if (encoders_[k] && (parts_.rule->traits().answers_changes || encoders_[k]->traits().weights)) {
    const std::span<float> values = contribution_.as<float>().first(range.count());
    encoders_[k]->decode(message.payload(), values);
    worker_->apply(range, values);
  } else {
    if (message.floats().size() != range.count())
      fail("rank {} answered with {} numbers", message.from, message.floats().size());
    worker_->apply(range, message.floats());
  }
  version_[k] = static_cast<std::int64_t>(message.head.second);
  own_in_[k] = parts_.sync.kind == Sync::Kind::essp ? static_cast<std::int64_t>(message.head.number) : pushes_;
  --awaited_, answer_due_[k] = 0;
  if (overlap_ && overlap_->defers) note_arrival(k);
  if (parts_.sync.in_rounds()) {
    round_ = std::max(round_, message.head.clock);
    return;
  }
  seen_[k] = message.head.clock;
  if (parts_.sync.kind != Sync::Kind::essp) return;
  const auto own = static_cast<std::int64_t>(message.head.number);
  const ReplicaView view = parts_.view();
  rules::for_each_weight(*view.segments, range, [&](std::size_t begin, std::size_t count) {
    own_steps_.redo(own, begin, count, view.weights);
  });
  own_steps_.forget_before(seen());
}

std::int64_t ServerClient::seen() const { return std::ranges::min(seen_); }

}  // namespace echelon::exchanges
