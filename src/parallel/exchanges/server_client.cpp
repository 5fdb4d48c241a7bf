#include "parallel/exchanges/server_client.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "collective/collectives.h"
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
  const auto mine = [&](const Key& k) { return k.server == parts_.rank(); };
  const auto first = std::ranges::find_if(keys_, mine);
  const auto count = std::ranges::count_if(keys_, mine);
  if (count == 0) return;
  const auto at = static_cast<std::size_t>(first - keys_.begin());
  std::vector<Address> writers;
  for (Rank r = 0; r < parts_.workers(); ++r) writers.push_back({r, worker_box});
  shard_ = std::make_unique<ServerShard>(parts_, std::span(keys_).subspan(at, static_cast<std::size_t>(count)), at,
                                         std::move(writers));
}

void ServerClient::before_step(const StepMoment& moment) {
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
  if (parts_.sync.kind == Sync::Kind::essp) own_steps_.begin(parts_.view().weights);
  const bool asks_now = asks(moment);
  if (settings_.n_push > 1) merge(moment);
  if (steps_ % settings_.n_push == 0) {
    push_all(moment, asks_now);
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
  for (std::uint32_t k = 0; k < keys_.size(); ++k) push_key(k, moment, asks);
  ++pushes_;
  if (settings_.n_push > 1) std::ranges::fill(merged_.as<float>(), 0.0f), merged_rate_ = 0;
}

void ServerClient::push_key(std::uint32_t k, const StepMoment& moment, bool asks) {
  const Key& key = keys_[k];
  const std::span<float> out = contribution_.as<float>().first(key.range.count());
  const double share = gradients() ? moment.share : 1;
  LetterHead head{.kind = static_cast<std::uint16_t>(asks ? push_answer : push), .box = server_box, .key = k};
  if (parts_.sync.in_rounds()) {
    worker_->contribute(key.range, share, out);
    head.clock = round_, head.number = share, head.second = std::bit_cast<std::uint64_t>(moment.lr);
  } else {
    head.clock = moment.clock, head.number = gradients() ? moment.lr * share : moment.share;
    head.second = static_cast<std::uint64_t>(version_[k] + pushes_ - own_in_[k]);  // it has seen its own
    if (settings_.n_push > 1) {
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
  parts_.mail->post(key.server, head, bytes);
}

void ServerClient::flush_servers() {
  for (std::uint32_t k = 0; k < keys_.size(); ++k)
    if (k == 0 || keys_[k].server != keys_[k - 1].server)
      parts_.mail->post(keys_[k].server, {.kind = flush, .box = server_box, .key = k}), ++flushes_;
  while (flushes_ > 0) take_next();
}

void ServerClient::leave() {
  if (merged_rate_ > 0) push_all({.clock = pushes_ * settings_.n_push}, false);
  flush_servers();
}

void ServerClient::settle() {
  agree_on_round();
  if (parts_.sync.kind == Sync::Kind::essp) {  // all are merged: what the servers sent then has come before this
    flush_servers();
    own_steps_.forget_before(std::numeric_limits<std::int64_t>::max());
    barrier(parts_.crew->group(), "the end of a round");
  }
  Letter letter;
  while (parts_.mail->try_take(worker_box, letter)) take(letter);
}

void ServerClient::read_model(std::span<float> out) {
  if (shard_) shard_->read_model(out);
  std::vector<Range> ranges(static_cast<std::size_t>(parts_.workers()));
  std::size_t at = 0;
  for (Rank r = 0; r < parts_.workers(); ++r) {
    std::size_t end = at;
    for (const Key& k : keys_)
      if (k.server == r) end = k.range.end;
    ranges[static_cast<std::size_t>(r)] = {at, end};
    at = end;
  }
  all_gather(parts_.crew->group(), numbers(out), ranges, "the model on the servers");
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
    case flushed: --flushes_; return;
    case hand_in: hand_in_ = std::max(hand_in_, letter.head.clock); return;
    case answer: take_answer(letter); return;
    default: fail("rank {} sent a worker a letter of kind {}", letter.from, letter.head.kind);
  }
}

void ServerClient::take_answer(Letter& letter) {
  const std::uint32_t k = letter.head.key;
  if (k >= keys_.size()) fail("rank {} answered about key {}, which does not exist", letter.from, k);
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
  if (shard_)
    for (const StateSpan& s : shard_->state()) all.push_back(s);
  auto add = [&](const char* name, auto& value) {
    all.push_back({name, std::as_writable_bytes(std::span(&value, 1))});
  };
  all.push_back({"seen", std::as_writable_bytes(std::span(seen_))});
  all.push_back({"version", std::as_writable_bytes(std::span(version_))});
  add("pushes", pushes_), add("steps", steps_), add("round", round_), add("warm", warm_);
  all.push_back({"own in", std::as_writable_bytes(std::span(own_in_))});
  add("waited", waited_), add("parts done", parts_done_), add("parts", parts_count_), add("ages", ages_);
  return all;
}

std::vector<Figure> ServerClient::figures() {
  const ServerShard::Counts c = shard_ ? shard_->counts() : ServerShard::Counts{};
  enum { updates, contributions, staleness, dropped, waited, done, parts, ages, lead, moved, speed, each };
  const std::array<double, each> own{c.updates,
                                     c.contributions,
                                     c.staleness,
                                     c.dropped,
                                     waited_,
                                     parts_done_,
                                     parts_count_,
                                     ages_,
                                     c.lead,
                                     c.moved,
                                     shard_ ? shard_->least_speed() : 1};
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
