#include "parallel/exchanges/server_shard.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/vector.h"

namespace echelon::exchanges {

namespace {
constexpr double long_time = 1e9;  // seconds: a server waits as long as the job lives; a lost rank ends the wait
}

ServerShard::ServerShard(const ExchangeParts& parts, std::span<const Key> keys, std::size_t first)
    : parts_(parts), first_(first) {
  const auto workers = static_cast<std::size_t>(parts_.workers());
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
    if (parts_.sync.in_rounds()) s.sum = Buffer(key.range.count() * sizeof(float));
    s.clocks.assign(workers, 0), s.read_at.assign(workers, 0), s.wanted.assign(workers, -1);
    if (parts_.sync.kind == Sync::Kind::value) {
      s.at_slowest = Buffer(key.range.count() * sizeof(float));
      std::ranges::copy(s.shared->model(), s.at_slowest.as<float>().begin());
    }
    slices_.push_back(std::move(s));
  }
  contribution_ = Buffer(largest * sizeof(float));
  bytes_ = Buffer(most_bytes);
  last_seen_.assign(workers, -1), interval_.assign(workers, 0);
  task_ = parts_.world->spawn("server", [this] { run(); });
}

ServerShard::~ServerShard() { stop(); }

void ServerShard::stop() {
  if (!task_) return;
  parts_.mail->shut(Exchange::server_box);
  task_.reset();
}

void ServerShard::run() {
  try {
    for (Letter letter; parts_.mail->take(Exchange::server_box, letter, long_time);) handle(letter);
  } catch (const Failure&
               failure) {  // the workers' own waits see a lost rank by themselves; anything else they must be told
    parts_.world->give_up(failure.what());
  }
}

void ServerShard::handle(const Letter& letter) {
  const std::uint32_t key = letter.head.key;
  if (letter.head.kind == flush) {
    return parts_.mail->post(letter.from, {.kind = flushed, .box = Exchange::worker_box, .key = key});
  }
  if (key < first_ || key - first_ >= slices_.size())
    fail("rank {} wrote to key {}, which is not on this server", letter.from, key);
  Slice& s = slices_[key - first_];
  switch (letter.head.kind) {
    case push_answer: s.wanted[static_cast<std::size_t>(letter.from)] = 0; [[fallthrough]];
    case push: contribute(s, key, letter); break;
    case pull: s.wanted[static_cast<std::size_t>(letter.from)] = letter.head.clock; break;
    default: fail("rank {} sent a server a letter of kind {}", letter.from, letter.head.kind);
  }
  answer_those_who_may(s, key);
}

void ServerShard::contribute(Slice& s, std::uint32_t key, const Letter& letter) {
  const auto from = static_cast<std::size_t>(letter.from);
  const double lr = std::bit_cast<double>(letter.head.second);
  const double now = parts_.world->now();
  if (last_seen_[from] >= 0) {
    const double took = now - last_seen_[from];
    interval_[from] = interval_[from] > 0 ? 0.8 * interval_[from] + 0.2 * took : took;
  }
  last_seen_[from] = now;
  if (!parts_.sync.in_rounds()) return merge(s, letter, lr);

  if (letter.head.clock < s.round) {  // too late: the round was closed without it
    ++dropped_;
    s.wanted[from] = -1;
    return answer(s, key, letter.from, encoded_answer(s, key));
  }
  const std::span<float> sum = s.sum.as<float>();
  if (s.came == 0) std::ranges::fill(sum, 0.0f), s.shares = 0;
  if (s.decoder)
    s.decoder->add(letter.payload(), 1, sum);
  else if (letter.floats().size() == sum.size())
    kernels::add(sum.data(), sum.data(), letter.floats().data(), sum.size());
  else
    fail("rank {} sent {} numbers for key {}, which has {}", letter.from, letter.floats().size(), key, sum.size());
  s.shares += letter.head.number;
  s.clocks[from] = letter.head.clock + 1;
  if (++s.came >= needed(parts_.sync, parts_.workers())) close_round(s, key, lr);
}

void ServerShard::close_round(Slice& s, std::uint32_t key, double lr) {
  const std::span<float> sum = s.sum.as<float>();
  if (s.shares > 0) kernels::scale(sum.data(), sum.data(), static_cast<float>(1 / s.shares), sum.size());
  s.shared->conclude(sum, {.number = s.round, .lr = lr, .contributions = s.came});
  s.came = 0;
  ++s.round;
  ++s.version;
  merged_ += 1;
  const std::span<const std::byte> bytes = encoded_answer(s, key);
  for (Rank r = 0; r < parts_.workers(); ++r)
    if (s.clocks[static_cast<std::size_t>(r)] == s.round) answer(s, key, r, bytes);
}

void ServerShard::merge(Slice& s, const Letter& letter, double lr) {
  const auto from = static_cast<std::size_t>(letter.from);
  const std::span<float> in = contribution_.as<float>().first(s.range.count());
  std::span<const float> values = in;
  if (s.decoder)
    s.decoder->decode(letter.payload(), in);
  else
    values = letter.floats();
  if (values.size() != s.range.count())
    fail("rank {} sent {} numbers for key {}, which has {}", letter.from, values.size(), letter.head.key, in.size());
  const std::int64_t before = oldest(s);
  s.shared->absorb(values, {.from = letter.from,
                            .clock = letter.head.clock,
                            .staleness = s.version - s.read_at[from],
                            .lr = lr,
                            .share = letter.head.number,
                            .speed = speed_of(letter.from)});
  staleness_ += s.version - s.read_at[from];
  ++merged_;
  ++s.version;
  s.clocks[from] = letter.head.clock + 1;
  if (oldest(s) == before) return;
  if (parts_.sync.kind == Sync::Kind::value) std::ranges::copy(s.shared->model(), s.at_slowest.as<float>().begin());
  if (parts_.sync.kind == Sync::Kind::essp)  // nobody needs to ask
    for (Rank r = 0; r < parts_.workers(); ++r) answer(s, letter.head.key, r, encoded_answer(s, letter.head.key));
}

void ServerShard::answer_those_who_may(Slice& s, std::uint32_t key) {
  if (parts_.sync.in_rounds()) return;
  for (Rank r = 0; r < parts_.workers(); ++r) {
    std::int64_t& wanted = s.wanted[static_cast<std::size_t>(r)];
    if (wanted < 0 || oldest(s) < wanted || moved_too_far(s, r)) continue;
    wanted = -1;
    answer(s, key, r, encoded_answer(s, key));
  }
}

bool ServerShard::moved_too_far(const Slice& s, Rank reader) const {
  if (parts_.sync.kind != Sync::Kind::value) return false;
  if (s.clocks[static_cast<std::size_t>(reader)] <= oldest(s)) return false;  // the slowest never waits
  const std::span<const float> now = s.shared->model(), then = s.at_slowest.as<float>();
  float most = 0;
  for (std::size_t i = 0; i < now.size(); ++i) most = std::max(most, std::abs(now[i] - then[i]));
  return most > parts_.sync.bound;
}

std::span<const std::byte> ServerShard::encoded_answer(Slice& s, std::uint32_t key) {
  if (!s.answer_codec) return std::as_bytes(s.shared->answer());
  Stream random({parts_.seed, static_cast<std::uint32_t>(s.version), key, stream_layer("answer codec")});
  const std::size_t bytes = s.answer_codec->encode(
      s.shared->answer(), {.number = s.version, .epoch = 1e9, .random = random}, bytes_.as<std::byte>());
  return bytes_.as<std::byte>().first(bytes);
}

void ServerShard::answer(Slice& s, std::uint32_t key, Rank to, std::span<const std::byte> bytes) {
  s.read_at[static_cast<std::size_t>(to)] = s.version;
  parts_.mail->post(to, {.kind = LetterKind::answer, .box = Exchange::worker_box, .key = key, .clock = oldest(s)},
                    bytes);
}

std::int64_t ServerShard::oldest(const Slice& s) const { return std::ranges::min(s.clocks); }

double ServerShard::speed_of(Rank worker) const {
  double sum = 0;
  int known = 0;
  for (double i : interval_)
    if (i > 0) sum += 1 / i, ++known;
  const double own = interval_[static_cast<std::size_t>(worker)];
  return own > 0 && known > 0 ? 1 / own / (sum / known) : 1;
}

void ServerShard::read_model(std::span<float> out) const {
  for (const Slice& s : slices_)
    std::ranges::copy(s.shared->model(), out.begin() + static_cast<std::ptrdiff_t>(s.range.begin));
}

std::vector<StateSpan> ServerShard::state() {
  std::vector<StateSpan> all;
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    Slice& s = slices_[i];
    auto add = [&](const std::string& name, std::span<std::byte> bytes) {
      all.push_back({fmt::format("server {} {}", first_ + i, name), bytes});
    };
    for (const StateSpan& state : s.shared->state()) add(state.name, state.bytes);
    if (s.answer_codec)
      for (const Codec::State& state : s.answer_codec->state()) add("answers " + state.name, state.bytes);
    add("round", std::as_writable_bytes(std::span(&s.round, 1)));
    add("version", std::as_writable_bytes(std::span(&s.version, 1)));
    add("clocks", std::as_writable_bytes(std::span(s.clocks)));
    add("read at", std::as_writable_bytes(std::span(s.read_at)));
    if (parts_.sync.kind == Sync::Kind::value) add("at slowest", s.at_slowest.as<std::byte>());
  }
  return all;
}

}  // namespace echelon::exchanges
