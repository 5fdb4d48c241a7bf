#include "parallel/server/shard.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "parallel/team/message_wait.h"

namespace echelon::exchanges {

namespace {
constexpr std::int64_t most_clock = std::int64_t{1} << 62;  // it comes from a wire, and is added to
}  // namespace

ServerShard::ServerShard(const ExchangeParts& parts, std::span<const Key> keys, const ServerPlace& place)
    : parts_(parts), place_(place), first_(place.first), writers_(place.writers) {
  const auto workers = static_cast<std::size_t>(parts_.workers());
  reply_tag_.assign(workers, Exchange::worker_tag);
  for (const Address& a : writers_) reply_tag_[static_cast<std::size_t>(a.rank)] = a.tag;
  std::size_t largest = 0, most_bytes = 0;
  for (const Key& key : keys) {
    Slice s;
    s.range = key.range;
    s.shared = parts_.rule->make_shared(parts_.place(key.range));
    largest = std::max(largest, key.range.count());
    if (parts_.codec) {
      s.decoder = parts_.codec(parts_.pieces(key.range));
      if (parts_.rule->traits().answers_changes || s.decoder->traits().weights)
        s.answer_codec = parts_.codec(parts_.pieces(key.range));
      most_bytes = std::max(most_bytes, s.decoder->most_bytes());
    }
    if (place_.factors) s.factors = std::make_unique<FactorMessage>(key.range, parts_.trainer->thin_products());
    if (parts_.sync.in_rounds()) s.sum = Buffer(key.range.count() * sizeof(float));
    s.clocks.assign(workers, 0), s.wanted.assign(workers, -1), s.warm.assign(workers, 0);
    s.awaited.assign(workers, 0);
    if (parts_.sync.in_rounds()) s.waiting.resize(writers_.size());
    if (parts_.sync.kind == Sync::Kind::value)
      for (std::size_t w = 0; w < workers; ++w) {
        s.read.emplace_back(key.range.count() * sizeof(float));
        std::ranges::copy(s.shared->model(), s.read.back().as<float>().begin());
      }
    if (place_.filters.any())
      for (std::size_t w = 0; w < workers; ++w) s.filters.emplace_back(place_.filters, key.range.count());
    if (!place_.peers.empty())
      s.changes = std::make_unique<SignificantChanges>(parts_.sync.threshold, key.range.count());
    slices_.push_back(std::move(s));
  }
  contribution_ = Buffer(largest * sizeof(float));
  bytes_ = Buffer(most_bytes);
  site_clocks_.assign(place_.peers.size(), 0);
  flushes_.assign(workers, 0);
  gone_.assign(workers, 0), began_.assign(workers, -1), interval_.assign(workers, 0);
  const int tag = chain_tag(place_.position);
  task_ = parts_.world->spawn(tag == Exchange::server_tag ? "server" : "replica", [this, tag] {
    serve_messages(*parts_.world, *parts_.mailbox, tag, [this](Message& message) {
      const std::size_t key = message.head.key;
      handle(message);
      if (key >= first_ && key - first_ < slices_.size()) latecomer_ = latecomer_of(slices_[key - first_]);
    });
  });
}

ServerShard::~ServerShard() { stop(); }

void ServerShard::stop() {
  if (!task_) return;
  parts_.mailbox->shut(chain_tag(place_.position));
  task_.reset();
}

// A site that is behind; the first worker, while others wait for its warm start; else whoever has made the fewest
// steps.
Rank ServerShard::latecomer_of(const Slice& s) const {
  if (is_ahead_of_sites())
    return place_.peers[static_cast<std::size_t>(std::ranges::min_element(site_clocks_) - site_clocks_.begin())];
  if (std::ranges::any_of(s.warm, [](std::int64_t updates) { return updates > 0; })) return writers_.front().rank;
  Rank slowest = -1;
  for (const Address& a : writers_) {
    const auto r = static_cast<std::size_t>(a.rank);
    if (!gone_[r] && (slowest < 0 || s.clocks[r] < s.clocks[static_cast<std::size_t>(slowest)])) slowest = a.rank;
  }
  return slowest;
}

void ServerShard::handle(Message& message) {
  if (message.head.kind == site_change) return take_site_change(message);
  if (!is_passed(message)) return;
  const std::uint32_t key = message.head.key;
  const auto from = static_cast<std::size_t>(message.from);
  const bool asks_again = (message.head.kind & again) != 0;
  message.head.kind &= static_cast<std::uint16_t>(~again);
  if (message.head.kind == flush) return handle_flush(message, asks_again);
  if (key < first_ || key - first_ >= slices_.size())
    fail("rank {} wrote to key {}, which is not on this server", message.from, key);
  Slice& s = slices_[key - first_];
  const MessageHeader head = message.head;
  if (head.clock < 0 || head.clock > most_clock)
    fail("rank {} says that it is at step {}, which nobody reaches", message.from, head.clock);
  if (parts_.sync.in_rounds() && head.kind != push && head.kind != push_answer)
    fail("rank {} asks for key {} without a contribution (message of kind {}), and in rounds only those are answered",
         message.from, key, head.kind);
  const bool seen = was_seen(s, message);
  if (seen && !asks_again) return;
  switch (head.kind) {
    case push:
    case push_answer:
      if (!seen) gone_[from] = 0;
      if (parts_.sync.in_rounds()) return join_round(s, key, message, seen);
      if (key == first_ && !seen) measure_speed(message.from);
      if (!seen) merge(s, message);
      if (head.kind == push_answer)
        s.wanted[from] =
            parts_.sync.bounded() ? std::max<std::int64_t>(0, must_have_seen(parts_.sync, head.clock + 1)) : 0;
      break;
    case pull: s.wanted[from] = 0; break;
    case await:
      s.wanted[from] = std::max<std::int64_t>(0, must_have_seen(parts_.sync, head.clock + 1));
      s.awaited[from] = head.clock + 1;
      break;
    case warm: s.warm[from] = head.clock; break;
    default: fail("rank {} sent a server a message of kind {}", message.from, head.kind);
  }
  answer_those_who_may(s, key);
}

void ServerShard::handle_flush(const Message& message, bool asks_again) {
  const auto from = static_cast<std::size_t>(message.from);
  const bool seen = place_.replicas > 1 && flushes_[from] >= message.head.clock;
  if (seen && !asks_again) return;
  const bool writes = std::ranges::find(writers_, message.from, &Address::rank) != writers_.end();
  if (!seen) {
    flushes_[from] = message.head.clock;
    gone_[from] = writes;
    began_[from] = -1;
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      const auto k = static_cast<std::uint32_t>(first_ + i);
      parts_.sync.in_rounds() ? close_rounds(slices_[i], k) : answer_those_who_may(slices_[i], k);
    }
    if (writes && !place_.peers.empty()) tell_sites(slices_.front(), static_cast<std::uint32_t>(first_));
  }
  if (is_last())
    parts_.mailbox->post(message.from, {.kind = flushed,
                                        .tag = static_cast<std::uint16_t>(reply_tag_[from]),
                                        .key = message.head.key,
                                        .clock = message.head.clock});
  if (have_all_left()) std::ranges::fill(gone_, 0);  // they meet now, and all will be there when they go on
}

bool ServerShard::have_all_left() const {
  return std::ranges::all_of(writers_, [&](const Address& a) { return gone_[static_cast<std::size_t>(a.rank)] != 0; });
}

void ServerShard::merge(Slice& s, const Message& message) {
  const auto from = static_cast<std::size_t>(message.from);
  const std::uint32_t key = message.head.key;
  const std::span<float> in = contribution_.as<float>().first(s.range.count());
  std::span<const float> values = in;
  if (!s.filters.empty())
    s.filters[from].read(message.payload(), in);
  else if (s.decoder)
    s.decoder->decode(message.payload(), in);
  else if (s.factors)
    read_factors(s, message, in);
  else
    values = message.floats();
  if (values.size() != s.range.count())
    fail("rank {} sent {} numbers for key {}, which has {}", message.from, values.size(), key, in.size());
  const auto read = static_cast<std::int64_t>(message.head.second);
  if (read > s.version || read < 0) fail("rank {} has read a version of key {} that does not exist", message.from, key);
  const std::int64_t staleness = s.version - read, before = oldest(s);
  const bool gradients = parts_.rule->traits().quantity == RuleTraits::Quantity::gradient;
  counts_.lead = std::max(counts_.lead, static_cast<double>(message.head.clock - before));
  if (s.changes) s.changes->before_update(s.shared->model());
  s.shared->absorb(values, {.from = message.from,
                            .clock = message.head.clock,
                            .staleness = staleness,
                            .lr = gradients ? message.head.number : 0,
                            .share = gradients ? 1 : message.head.number,
                            .speed = speed_of(message.from)});
  counts_.staleness += static_cast<double>(staleness);
  counts_.contributions += 1, counts_.updates += 1;
  ++s.version;
  s.clocks[from] = message.head.clock + 1;
  if (s.changes) {
    s.changes->after_update(s.shared->model());
    tell_sites(s, key);
  }
  if (oldest(s) > before && parts_.sync.kind == Sync::Kind::essp) {  // nobody needs to ask
    const std::span<const std::byte> bytes = encoded_answer(s, key);
    for (const Address& a : writers_) answer(s, key, a.rank, bytes);
  }
}

void ServerShard::read_factors(const Slice& s, const Message& message, std::span<float> out) {
  parts_.world->compute(s.factors->read(message.floats(), out, product_));
}

void ServerShard::answer_those_who_may(Slice& s, std::uint32_t key) {
  if (parts_.sync.in_rounds()) return;
  const bool by_value = parts_.sync.kind == Sync::Kind::value;
  for (bool again = true; again;) {  // whoever reads may be the slowest, and let others go on
    again = false;
    for (const Address& a : writers_) {
      const auto r = static_cast<std::size_t>(a.rank);
      const bool alone = gone_[static_cast<std::size_t>(writers_[0].rank)] == 0;  // the first worker still trains
      const bool warmed = s.warm[r] > 0 && (s.version >= s.warm[r] || !alone);
      const bool asked = s.wanted[r] >= 0 && oldest(s) >= s.wanted[r] && !is_ahead_of_sites();
      if (!warmed && !asked) continue;
      if (by_value) {
        const double far = moved(s, a.rank);
        if (far > parts_.sync.bound) continue;
        counts_.moved = std::max(counts_.moved, far);
      }
      s.wanted[r] = -1, s.warm[r] = 0;
      began_[r] = parts_.world->now();
      answer(s, key, a.rank, encoded_answer(s, key));
      again = by_value;
    }
  }
}

// How far the weights are from what those have read who have made the fewest steps, who never wait themselves (so it is
// 0 for them). Who has left does not count.
double ServerShard::moved(const Slice& s, Rank reader) const {
  std::int64_t slowest = std::numeric_limits<std::int64_t>::max();
  for (const Address& a : writers_)
    if (const auto r = static_cast<std::size_t>(a.rank); !gone_[r]) slowest = std::min(slowest, s.clocks[r]);
  if (s.clocks[static_cast<std::size_t>(reader)] <= slowest) return 0;
  const std::span<const float> now = s.shared->model();
  float most = 0;
  for (const Address& a : writers_) {
    const auto r = static_cast<std::size_t>(a.rank);
    if (gone_[r] || s.clocks[r] > slowest) continue;
    const std::span<const float> then = s.read[r].as<float>();
    for (std::size_t i = 0; i < now.size(); ++i) most = std::max(most, std::abs(now[i] - then[i]));
  }
  return most;
}

std::span<const std::byte> ServerShard::encoded_answer(Slice& s, std::uint32_t key) {
  if (!s.answer_codec) return std::as_bytes(s.shared->answer());
  Stream random({parts_.seed, static_cast<std::uint32_t>(s.version), key, stream_layer("answer codec")});
  const std::size_t bytes = s.answer_codec->encode(
      s.shared->answer(), {.number = s.version, .epoch = 1e9, .random = random}, bytes_.as<std::byte>());
  return bytes_.as<std::byte>().first(bytes);
}

void ServerShard::answer(Slice& s, std::uint32_t key, Rank to, std::span<const std::byte> bytes) {
  const auto r = static_cast<std::size_t>(to);
  s.shared->was_read(to);
  if (!s.read.empty()) std::ranges::copy(s.shared->model(), s.read[r].as<float>().begin());
  if (!is_last()) return;
  parts_.mailbox->post(to,
                       {.kind = MessageType::answer,
                        .tag = static_cast<std::uint16_t>(reply_tag_[r]),
                        .key = key,
                        .clock = parts_.sync.in_rounds() ? s.round : oldest(s),
                        .number = static_cast<double>(s.clocks[r]),
                        .second = static_cast<std::uint64_t>(s.version)},
                       bytes);
}

std::int64_t ServerShard::oldest(const Slice& s) const {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const Address& a : writers_) least = std::min(least, s.clocks[static_cast<std::size_t>(a.rank)]);
  return least;
}

}  // namespace echelon::exchanges
