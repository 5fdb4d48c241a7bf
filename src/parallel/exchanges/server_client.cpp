#include "parallel/exchanges/server_client.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "collective/all_reduce.h"
#include "collective/collectives.h"
#include "parallel/exchanges/server_sites.h"
#include "parallel/rules/common.h"

namespace echelon::exchanges {

namespace {
constexpr double long_time = 1e9;  // seconds: a lost rank ends the wait
}

ServerClient::ServerClient(const ServerSettings& settings, ExchangeParts parts)
    : settings_(settings),
      parts_(std::move(parts)),
      keys_(cut_into_keys(settings, parts_)),
      seen_(keys_.size()),
      version_(keys_.size()),
      own_in_(keys_.size()),
      worker_(parts_.rule->make_worker(parts_.view())) {
  std::size_t largest = 0, most_bytes = 0;
  for (const Key& key : keys_) {
    encoders_.push_back(parts_.codec ? parts_.codec(parts_.pieces(key.range)) : nullptr);
    largest = std::max(largest, key.range.count());
    if (encoders_.back()) most_bytes = std::max(most_bytes, encoders_.back()->most_bytes());
  }
  contribution_ = Buffer(largest * sizeof(float));
  bytes_ = Buffer(most_bytes);
  if (settings_.n_push > 1) merged_ = Buffer(parts_.floats() * sizeof(float));
  const std::vector<int>& hosts = parts_.world->place().host;
  for (const Key& key : keys_) gates_.push_back(ServerRelay::gate(settings_.overlay, parts_.rank(), key.server, hosts));
  if (settings_.overlay.kind != Overlay::Kind::flat)
    relay_ = std::make_unique<ServerRelay>(parts_, settings_.overlay, keys_);
  if (parts_.sync.kind == Sync::Kind::approximate) sites_ = sites_of(parts_.sync, hosts);
  if (settings_.filters.any())
    for (const Key& key : keys_) filters_.emplace_back(settings_.filters, key.range.count());
  if (parts_.order.kind == Order::Kind::magnitude) {
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
    place.filters = settings_.filters;
    if (p == 0 && settings_.kill_server >= 0 &&
        head == settings_.kill_server * parts_.workers() / server_count(settings_, parts_.workers()))
      place.dies_at = settings_.kill_at;
    if (parts_.order.kind == Order::Kind::enforced) place.order = answering_order(at, static_cast<std::size_t>(count));
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
        list.push_back({r, worker_box});
    return list;
  }
  const std::vector<int>& hosts = parts_.world->place().host;
  list.push_back({own, worker_box});
  for (const Rank child : children_of(settings_.overlay, own, own, hosts))
    list.push_back(ServerRelay::reply_to(settings_.overlay, child, own, hosts));
  return list;
}

// Where to push: the first of the key's chain that has not lost its state, or the way there.
Address ServerClient::gate(std::size_t k) const {
  if (lost_servers_[k] == 0) return gates_[k];
  const auto position = static_cast<int>(lost_servers_[k]);
  return {chain_rank(keys_[k].server, position, parts_.workers()), chain_box(position)};
}

void ServerClient::before_step(const StepMoment& moment) {
  moment_ = moment;
  if (overlaps_) std::ranges::fill(missing_, 0);
  for (const auto& keys : keys_of_bucket_)
    for (const std::uint32_t k : keys) ++missing_[k];
  if (settings_.warm_start > 0 && warm_ == 0) {  // everybody else begins with what the first worker has made
    if (parts_.rank() != 0) {
      for (std::uint32_t k = 0; k < keys_.size(); ++k)
        parts_.mail->post(keys_[k].server, {.kind = warm, .box = server_box, .key = k, .clock = settings_.warm_start});
      awaited_ = static_cast<int>(keys_.size());
      wait_for_answers();
    }
    warm_ = 1;
  }
  if (parts_.sync.kind != Sync::Kind::essp) return;
  Letter letter;
  while (parts_.mail->try_take(worker_box, letter)) take(letter);
  const std::int64_t needed = must_have_seen(parts_.sync, moment.clock);
  const double begin = parts_.world->now();
  while (seen() < needed) take_next();
  waited_ += parts_.world->now() - begin;
}

bool ServerClient::asks(const StepMoment& moment) {
  switch (parts_.sync.kind) {
    case Sync::Kind::essp: return false;
    case Sync::Kind::ssp: return seen() < must_have_seen(parts_.sync, moment.clock + 1);
    default: return parts_.sync.in_rounds() || steps_ % settings_.n_fetch == 0;
  }
}

double ServerClient::exchange(const StepMoment& moment) {
  ++steps_;
  parts_done_ += moment.done, parts_count_ += 1, ages_ += static_cast<double>(moment.clock - seen());
  missed_ = 0;
  if (parts_.sync.kind == Sync::Kind::soft) return exchange_softly(moment);
  if (parts_.sync.kind == Sync::Kind::essp) own_steps_.begin(parts_.view().weights);
  const bool asks_now = asks(moment);
  if (settings_.n_push > 1) merge(moment);
  if (budget_) {
    push_most_significant(moment, asks_now);
  } else if (steps_ % settings_.n_push == 0) {
    push_all(moment, asks_now);
    if (defers_) {  // backward is over: what has come may be written into the weights
      Letter letter;
      while (parts_.mail->try_take(worker_box, letter)) take(letter);
      return 0;
    }
  } else if (asks_now) {
    for (std::uint32_t k = 0; k < keys_.size(); ++k)
      parts_.mail->post(keys_[k].server, {.kind = pull, .box = server_box, .key = k});
  }
  if (asks_now) {
    const std::int64_t round = round_;
    awaited_ = static_cast<int>(keys_.size());
    wait_for_answers();
    if (parts_.sync.in_rounds()) missed_ = round_ - round - 1;
  }
  if (parts_.rule->traits().local_step) return 1;
  return asks_now ? 0 : moment.share;  // what it pushes, its own copy has to make too
}

// A new contribution goes out when the last one has been merged; the worker never waits for that, unless it is late.
double ServerClient::exchange_softly(const StepMoment& moment) {
  Letter letter;
  while (parts_.mail->try_take(worker_box, letter)) take(letter);
  if (awaited_ > 0 && moment.clock - pushed_at_ < parts_.sync.staleness) return 1;
  wait_for_answers();
  push_all(moment, true);
  awaited_ = static_cast<int>(keys_.size());
  pushed_at_ = moment.clock;
  return 1;
}

// The slices that matter most, as many as there is room for; the others add up. A slice's push has the mean of its
// gradients, weighted by their rates, and the sum of the rates.
void ServerClient::push_most_significant(const StepMoment& moment, bool asks) {
  const double rate = moment.lr * moment.share;
  const std::span<const float> weights = parts_.view().weights;
  for (std::size_t k = 0; k < keys_.size(); ++k) {
    const Range range = keys_[k].range;
    const std::span<float> out = contribution_.as<float>().first(range.count());
    worker_->contribute(range, rate, out);
    const std::span<float> pending = pending_.as<float>().subspan(range.begin, range.count());
    float change = 0, size = 1e-12f;
    for (std::size_t i = 0; i < out.size(); ++i) {
      pending[i] += out[i];
      change += std::abs(pending[i]), size += std::abs(weights[range.begin + i]);
    }
    pending_rate_[k] += rate;
    significance_[k] = change / size;
  }
  const std::vector<std::uint32_t>& chosen = budget_->choose(significance_);
  for (const std::uint32_t k : chosen) push_key(k, moment, asks);
  ++pushes_;
  if (!asks) return;
  for (std::uint32_t k = 0; k < keys_.size(); ++k)
    if (std::ranges::find(chosen, k) == chosen.end())
      parts_.mail->post(keys_[k].server, {.kind = await, .box = server_box, .key = k, .clock = moment.clock});
}

void ServerClient::push_pending(const StepMoment& moment) {
  for (std::uint32_t k = 0; k < keys_.size(); ++k)
    if (pending_rate_[k] > 0) push_key(k, moment, false);
}

void ServerClient::after_step(const StepMoment& moment) {
  if (parts_.sync.kind == Sync::Kind::essp) own_steps_.end(moment.clock, parts_.view().weights);
}

bool ServerClient::keep_going() {
  Letter letter;
  while (parts_.mail->try_take(worker_box, letter)) take(letter);
  return hand_in_ < round_;
}

// The mean of the merged gradients, weighted by their rates, is one push with the sum of the rates: it moves the model
// as far as its steps would have.
void ServerClient::merge(const StepMoment& moment) {
  const double rate = moment.lr * moment.share;
  for (const Key& key : keys_) {
    const std::span<float> out = contribution_.as<float>().first(key.range.count());
    worker_->contribute(key.range, rate, out);
    kernels::add_into(merged_.as<float>().data() + key.range.begin, out.data(), out.size());
  }
  merged_rate_ += rate;
}

void ServerClient::push_all(const StepMoment& moment, bool asks) {
  if (defers_) wait_for_answers();
  for (std::uint32_t k = 0; k < keys_.size(); ++k)
    if (!overlaps_ || missing_[k] >= 0) push_key(k, moment, asks);
  if (defers_) {
    awaited_ = static_cast<int>(keys_.size());
    std::ranges::fill(arrived_, 0), std::ranges::fill(furthest_, 0);
  }
  ++pushes_;
  if (settings_.n_push > 1) std::ranges::fill(merged_.as<float>(), 0.0f), merged_rate_ = 0;
}

void ServerClient::push_key(std::uint32_t k, const StepMoment& moment, bool asks) {
  const Key& key = keys_[k];
  const std::span<float> out = contribution_.as<float>().first(key.range.count());
  const double share = gradients() ? moment.share : 1;
  LetterHead head{.kind = static_cast<std::uint16_t>(asks ? push_answer : push),
                  .box = static_cast<std::uint16_t>(gates_[k].box),
                  .key = k};
  if (parts_.sync.in_rounds()) {
    worker_->contribute(key.range, share, out);
    head.clock = round_, head.number = share, head.second = std::bit_cast<std::uint64_t>(moment.lr);
  } else {
    head.clock = moment.clock, head.number = gradients() ? moment.lr * share : moment.share;
    head.second =
        static_cast<std::uint64_t>(version_[k] + (budget_ ? 0 : pushes_ - own_in_[k]));  // it has seen its own
    if (budget_) {
      head.number = pending_rate_[k];
      const std::span<float> pending = pending_.as<float>().subspan(key.range.begin, key.range.count());
      const auto scale = static_cast<float>(pending_rate_[k] > 0 ? 1 / pending_rate_[k] : 0);
      kernels::scale(out.data(), pending.data(), scale, out.size());
      std::ranges::fill(pending, 0.0f), pending_rate_[k] = 0;
    } else if (settings_.n_push > 1) {
      head.number = merged_rate_;
      const auto scale = static_cast<float>(merged_rate_ > 0 ? 1 / merged_rate_ : 0);
      kernels::scale(out.data(), merged_.as<float>().data() + key.range.begin, scale, out.size());
    } else {
      worker_->contribute(key.range, 1, out);
    }
  }
  std::span<const std::byte> bytes = std::as_bytes(out);
  if (encoders_[k]) {
    const CodecStep step{
        .number = pushes_, .epoch = moment.epoch, .random = parts_.random("codec", moment.clock * 1009 + k)};
    bytes = bytes_.as<std::byte>().first(encoders_[k]->encode(out, step, bytes_.as<std::byte>()));
  }
  if (!filters_.empty())
    bytes = filters_[k].write(out, parts_.view().weights.subspan(key.range.begin, key.range.count()),
                              parts_.sync.in_rounds() ? moment.lr : head.number,
                              parts_.random("filter", moment.clock * 1009 + k));
  post_push(k, head, bytes);
}

void ServerClient::post_push(std::uint32_t k, const LetterHead& head, std::span<const std::byte> bytes) {
  if (!unanswered_.empty()) unanswered_[k].keep(head, bytes);
  const Address to = gate(k);
  LetterHead addressed = head;
  addressed.box = static_cast<std::uint16_t>(to.box);
  parts_.mail->post(to.rank, addressed, bytes);
}

// A server has lost its state: what it had not answered goes to the next in its chain, which knows all that was.
void ServerClient::go_on_with_the_next(const Letter& letter) {
  for (std::uint32_t k = 0; k < keys_.size(); ++k) {
    if (keys_[k].server != letter.from) continue;
    ++lost_servers_[k];
    if (lost_servers_[k] >= settings_.replicas) fail("all replicas of the server on rank {} are lost", letter.from);
    if (unanswered_[k].waits) post_push(k, LetterHead(unanswered_[k].head), unanswered_[k].bytes);
    if (unanswered_[k].flushing)
      parts_.mail->post(gate(k).rank, {.kind = flush, .box = static_cast<std::uint16_t>(gate(k).box), .key = k});
  }
}

void ServerClient::flush_servers() {
  for (std::uint32_t k = 0; k < keys_.size(); ++k)
    if (k == 0 || keys_[k].server != keys_[k - 1].server) {
      const Address to = gate(k);
      parts_.mail->post(to.rank, {.kind = flush, .box = static_cast<std::uint16_t>(to.box), .key = k}), ++flushes_;
      if (!unanswered_.empty()) unanswered_[k].flushing = true;
    }
  while (flushes_ > 0) take_next();
}

void ServerClient::leave() {
  if (defers_) wait_for_answers();
  if (merged_rate_ > 0) push_all({.clock = pushes_ * settings_.n_push}, false);
  if (budget_) push_pending({.clock = steps_ - 1});
  flush_servers();
}

void ServerClient::settle() {
  agree_on_round();
  if (parts_.sync.kind == Sync::Kind::soft) wait_for_answers();  // all have come, or said that they will not
  if (!sites_.empty()) settle_sites();
  if (parts_.sync.kind == Sync::Kind::essp) {  // all are merged: what the servers sent then has come before this
    flush_servers();
    own_steps_.forget_before(std::numeric_limits<std::int64_t>::max());
    barrier(parts_.crew->group(), "the end of a round");
  }
  Letter letter;
  while (parts_.mail->try_take(worker_box, letter)) take(letter);
}

// Changes on their way between sites are there when a letter that was posted after them is.
void ServerClient::settle_sites() {
  if (shards_[0])
    for (const Rank peer : shards_[0]->peers())
      parts_.mail->post(peer, {.kind = flush, .box = server_box, .key = 0}), ++flushes_;
  while (flushes_ > 0) take_next();
  barrier(parts_.crew->group(), "the end of a round");
}

// Every range of the model once, from the first of its chain that still has it; with sites the mean over them.
void ServerClient::read_model(std::span<float> out) {
  std::ranges::fill(out, 0.0f);
  for (std::size_t p = 0; p < shards_.size(); ++p)
    if (shards_[p]) shards_[p]->read_model(out, lost_servers_[shards_[p]->first_key()] == static_cast<std::int64_t>(p));
  const int copies = sites_.empty() ? 1 : std::ranges::max(sites_) + 1;
  if (copies > 1) kernels::scale(out.data(), out.data(), 1.0f / static_cast<float>(copies), out.size());
  if (parts_.workers() > 1) all_reduce(parts_.crew->group(), out);  // zeros where somebody else has it
}

// Everybody is here; who was late for the last rounds hears of them.
void ServerClient::agree_on_round() {
  std::vector<double> rounds(static_cast<std::size_t>(parts_.workers()));
  rounds[static_cast<std::size_t>(parts_.rank())] = static_cast<double>(round_);
  parts_.crew->share(rounds, std::vector<std::size_t>(rounds.size(), 1));
  round_ = static_cast<std::int64_t>(std::ranges::max(rounds));
  missed_ = 0;
}

void ServerClient::wait_for_answers() {
  const double begin = parts_.world->now();
  while (awaited_ > 0) take_next();
  waited_ += parts_.world->now() - begin;
}

void ServerClient::take_next() {
  Letter letter;
  if (!parts_.mail->take(worker_box, letter, long_time))
    fail("the mail was closed while a worker waited for an answer");
  take(letter);
}

void ServerClient::take(Letter& letter) {
  switch (letter.head.kind) {
    case flushed:
      --flushes_;
      if (!unanswered_.empty()) unanswered_[letter.head.key].flushing = false;
      return;
    case lost: go_on_with_the_next(letter); return;
    case hand_in: hand_in_ = std::max(hand_in_, letter.head.clock); return;
    case answer: take_answer(letter); return;
    default: fail("rank {} sent a worker a letter of kind {}", letter.from, letter.head.kind);
  }
}

void ServerClient::take_answer(Letter& letter) {
  const std::uint32_t k = letter.head.key;
  if (k >= keys_.size()) fail("rank {} answered about key {}, which does not exist", letter.from, k);
  const auto merged = parts_.sync.in_rounds() ? letter.head.clock : static_cast<std::int64_t>(letter.head.number);
  if (!unanswered_.empty() && !unanswered_[k].is_answered_by(merged)) return;  // a second answer to the same push
  const Range range = keys_[k].range;
  if (encoders_[k] && (parts_.rule->traits().answers_changes || encoders_[k]->traits().weights)) {
    const std::span<float> values = contribution_.as<float>().first(range.count());
    encoders_[k]->decode(letter.payload(), values);
    worker_->apply(range, values);
  } else {
    if (letter.floats().size() != range.count())
      fail("rank {} answered with {} numbers", letter.from, letter.floats().size());
    worker_->apply(range, letter.floats());
  }
  version_[k] = static_cast<std::int64_t>(letter.head.second);
  own_in_[k] = parts_.sync.kind == Sync::Kind::essp ? static_cast<std::int64_t>(letter.head.number) : pushes_;
  --awaited_;
  if (defers_) note_arrival(k);
  if (parts_.sync.in_rounds()) {
    round_ = std::max(round_, letter.head.clock);
    return;
  }
  seen_[k] = letter.head.clock;
  if (parts_.sync.kind != Sync::Kind::essp) return;
  const auto own = static_cast<std::int64_t>(letter.head.number);
  const ReplicaView view = parts_.view();
  rules::for_each_weight(*view.segments, range, [&](std::size_t begin, std::size_t count) {
    own_steps_.redo(own, begin, count, view.weights);
  });
  own_steps_.forget_before(seen());
}

std::int64_t ServerClient::seen() const { return std::ranges::min(seen_); }

std::vector<StateSpan> ServerClient::state() {
  std::vector<StateSpan> all;
  for (const StateSpan& s : worker_->state()) all.push_back({"worker " + s.name, s.bytes});
  for (std::size_t k = 0; k < keys_.size(); ++k)
    if (encoders_[k])
      for (const Codec::State& s : encoders_[k]->state())
        all.push_back({fmt::format("codec {} {}", k, s.name), s.bytes});
  for (std::size_t p = 0; p < shards_.size(); ++p)
    if (shards_[p])
      for (const StateSpan& s : shards_[p]->state()) all.push_back({fmt::format("{} {}", p, s.name), s.bytes});
  for (std::size_t k = 0; k < filters_.size(); ++k)
    for (const StateSpan& s : filters_[k].state()) all.push_back({fmt::format("filter {} {}", k, s.name), s.bytes});
  if (budget_) {
    all.push_back(rules::as_state("pending", pending_.as<float>()));
    all.push_back({"pending rates", std::as_writable_bytes(std::span(pending_rate_))});
    all.push_back({"waits", std::as_writable_bytes(budget_->waits())});
  }
  all.push_back({"lost servers", std::as_writable_bytes(std::span(lost_servers_))});
  if (relay_)
    for (const StateSpan& s : relay_->state()) all.push_back(s);
  auto add = [&](const char* name, auto& value) {
    all.push_back({name, std::as_writable_bytes(std::span(&value, 1))});
  };
  all.push_back({"seen", std::as_writable_bytes(std::span(seen_))});
  all.push_back({"version", std::as_writable_bytes(std::span(version_))});
  add("pushes", pushes_), add("steps", steps_), add("round", round_), add("warm", warm_);
  all.push_back({"own in", std::as_writable_bytes(std::span(own_in_))});
  add("waited", waited_), add("parts done", parts_done_), add("parts", parts_count_), add("ages", ages_);
  add("pushed at", pushed_at_), add("out of order", out_of_order_);
  return all;
}

std::vector<Figure> ServerClient::figures() {
  const ServerShard::Counts c = shards_[0] ? shards_[0]->counts() : ServerShard::Counts{};
  enum { updates, contributions, staleness, dropped, waited, done, parts, ages, unordered, lead, moved, speed, each };
  const std::array<double, each> own{
      c.updates,    c.contributions, c.staleness,   c.dropped, waited_, parts_done_,
      parts_count_, ages_,           out_of_order_, c.lead,    c.moved, shards_[0] ? shards_[0]->least_speed() : 1};
  const auto ranks = static_cast<std::size_t>(parts_.workers());
  std::vector<double> all(ranks * each);
  std::ranges::copy(own, all.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(parts_.rank()) * each));
  parts_.crew->share(all, std::vector<std::size_t>(ranks, each));
  std::array<double, each> sum{}, most{}, least = own;
  for (std::size_t i = 0; i < all.size(); ++i) {
    sum[i % each] += all[i];
    most[i % each] = std::max(most[i % each], all[i]), least[i % each] = std::min(least[i % each], all[i]);
  }
  const auto keys = static_cast<double>(keys_.size());
  const Sync& sync = parts_.sync;
  std::vector<Figure> figures{{"updates", sum[updates] / keys}, {"seconds_waited", sum[waited]}};
  if (!sync.in_rounds()) {
    figures.emplace_back("mean_staleness", sum[contributions] > 0 ? sum[staleness] / sum[contributions] : 0);
    figures.emplace_back("least_speed", least[speed]);
  }
  if (defers_) figures.emplace_back("answers_out_of_order", sum[unordered]);
  if (sync.bounded()) {
    figures.emplace_back("mean_age", sum[parts] > 0 ? sum[ages] / sum[parts] : 0);
    figures.emplace_back("most_lead", most[lead]);
  }
  if (sync.kind == Sync::Kind::value) figures.emplace_back("most_moved", most[moved]);
  if (sync.kind == Sync::Kind::quorum) figures.emplace_back("dropped", sum[dropped] / keys);
  if (sync.kind == Sync::Kind::a_bsp) figures.emplace_back("part_done", sum[parts] > 0 ? sum[done] / sum[parts] : 1);
  return figures;
}

}  // namespace echelon::exchanges
