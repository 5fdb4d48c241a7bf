// Parameter servers: the model is cut into keys, each on one server; workers send letters to them. Servers live on the
// workers' own ranks (one, some or all of them), as tasks beside the training: `servers` shards on as many ranks.

#include <algorithm>
#include <bit>

#include "collective/collectives.h"
#include "parallel/exchanges/exchanges.h"
#include "parallel/exchanges/server_shard.h"

namespace echelon::exchanges {

namespace {

constexpr double long_time = 1e9;  // seconds: a lost rank ends the wait

struct Settings {
  int servers = 1;         // 0: one on every worker
  std::int64_t fetch = 1;  // an answer is asked for every so many pushes
};

int server_count(const Settings& s, int workers) { return s.servers == 0 ? workers : std::min(s.servers, workers); }

std::vector<Key> cut_into_keys(const Settings& s, int workers, std::size_t floats, const Order& order) {
  std::vector<Key> keys;
  const int servers = server_count(s, workers);
  const bool slices = order.kind == Order::Kind::priority || order.kind == Order::Kind::enforced ||
                      order.kind == Order::Kind::magnitude;
  const std::size_t most = slices ? std::max<std::size_t>(order.bytes / sizeof(float), 16) : floats;
  for (int i = 0; i < servers; ++i) {
    const Range range = part_of(i, servers, floats, 16);
    const Rank rank = i * workers / servers;
    for (std::size_t at = range.begin; at < range.end; at += most)
      keys.push_back({{at, std::min(at + most, range.end)}, rank});
  }
  return keys;
}

class Server : public Exchange {
 public:
  Server(const Settings& settings, ExchangeParts parts)
      : settings_(settings),
        parts_(std::move(parts)),
        keys_(cut_into_keys(settings, parts_.workers(), parts_.floats(), parts_.order)) {
    worker_ = parts_.rule->make_worker(parts_.view());
    std::size_t largest = 0, most_bytes = 0;
    for (const Key& key : keys_) {
      encoders_.push_back(parts_.codec ? parts_.codec(parts_.pieces(key.range)) : nullptr);
      largest = std::max(largest, key.range.count());
      if (encoders_.back()) most_bytes = std::max(most_bytes, encoders_.back()->most_bytes());
    }
    contribution_ = Buffer(largest * sizeof(float));
    bytes_ = Buffer(most_bytes);
    const auto mine = [&](const Key& k) { return k.server == parts_.rank(); };
    const auto first = std::ranges::find_if(keys_, mine);
    const auto count = std::ranges::count_if(keys_, mine);
    if (count > 0) {
      const auto at = static_cast<std::size_t>(first - keys_.begin());
      shard_ = std::make_unique<ServerShard>(parts_, std::span(keys_).subspan(at, static_cast<std::size_t>(count)), at);
    }
  }

  // Bounded staleness: the cache will do as long as it has seen enough.
  void before_step(const StepMoment& moment) override {
    if (!parts_.sync.bounded()) return;
    Letter letter;
    while (parts_.mail->try_take(worker_box, letter)) take(letter);
    const std::int64_t needed = must_have_seen(parts_.sync, moment.clock);
    if (seen() >= needed) return;
    if (parts_.sync.kind != Sync::Kind::essp)
      for (std::uint32_t k = 0; k < keys_.size(); ++k)
        parts_.mail->post(keys_[k].server, {.kind = pull, .box = server_box, .key = k, .clock = needed});
    while (seen() < needed) take_next();
  }

  double exchange(const StepMoment& moment) override {
    const bool asks = !parts_.sync.bounded() && (parts_.sync.in_rounds() || ++pushes_ % settings_.fetch == 0);
    for (std::uint32_t k = 0; k < keys_.size(); ++k) push_key(k, moment, asks);
    if (asks)
      for (awaited_ = static_cast<int>(keys_.size()); awaited_ > 0;) take_next();
    const RuleTraits rule = parts_.rule->traits();
    if (rule.local_step) return 1;
    return asks ? 0 : moment.share;  // what it has pushed, its own copy has to make too
  }

  void settle() override {
    for (std::uint32_t k = 0; k < keys_.size(); ++k)
      if (k == 0 || keys_[k].server != keys_[k - 1].server)
        parts_.mail->post(keys_[k].server, {.kind = flush, .box = server_box, .key = k}), ++flushes_;
    while (flushes_ > 0) take_next();
    barrier(parts_.crew->group(), "the end of a round");
    Letter letter;
    while (parts_.mail->try_take(worker_box, letter)) take(letter);
  }

  void read_model(std::span<float> out) override {
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

  std::vector<StateSpan> state() override {
    std::vector<StateSpan> all;
    for (const StateSpan& s : worker_->state()) all.push_back({"worker " + s.name, s.bytes});
    for (std::size_t k = 0; k < keys_.size(); ++k)
      if (encoders_[k])
        for (const Codec::State& s : encoders_[k]->state())
          all.push_back({fmt::format("codec {} {}", k, s.name), s.bytes});
    if (shard_)
      for (const StateSpan& s : shard_->state()) all.push_back(s);
    all.push_back({"seen", std::as_writable_bytes(std::span(seen_))});
    all.push_back({"pushes", std::as_writable_bytes(std::span(&pushes_, 1))});
    return all;
  }

 private:
  void push_key(std::uint32_t k, const StepMoment& moment, bool asks) {
    const Key& key = keys_[k];
    const std::span<float> out = contribution_.as<float>().first(key.range.count());
    const bool gradient = parts_.rule->traits().moment == RuleTraits::Moment::gradient;
    const double share = gradient ? moment.share : 1;
    worker_->contribute(key.range, parts_.sync.in_rounds() ? share : 1, out);
    std::span<const std::byte> bytes = std::as_bytes(out);
    if (encoders_[k]) {
      const CodecStep step{
          .number = pushes_, .epoch = moment.epoch, .random = parts_.random("codec", moment.clock * 1009 + k)};
      bytes = bytes_.as<std::byte>().first(encoders_[k]->encode(out, step, bytes_.as<std::byte>()));
    }
    parts_.mail->post(key.server,
                      {.kind = asks ? push_answer : push,
                       .box = server_box,
                       .key = k,
                       .clock = moment.clock,
                       .number = share,
                       .second = std::bit_cast<std::uint64_t>(parts_.sync.in_rounds() ? moment.lr : moment.lr * share)},
                      bytes);
  }

  void take_next() {
    Letter letter;
    if (!parts_.mail->take(worker_box, letter, long_time))
      fail("the mail was closed while a worker waited for an answer");
    take(letter);
  }

  void take(const Letter& letter) {
    if (letter.head.kind == flushed) {
      --flushes_;
      return;
    }
    const std::uint32_t k = letter.head.key;
    if (letter.head.kind != answer || k >= keys_.size())
      fail("rank {} sent a worker a letter of kind {}, key {}", letter.from, letter.head.kind, k);
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
    seen_[k] = letter.head.clock;
    --awaited_;
  }

  std::int64_t seen() const { return std::ranges::min(seen_); }

  Settings settings_;
  ExchangeParts parts_;
  std::vector<Key> keys_;
  std::vector<std::int64_t> seen_ = std::vector<std::int64_t>(keys_.size());  // of everybody's steps, by key
  std::unique_ptr<WorkerSide> worker_;
  std::vector<std::unique_ptr<Codec>> encoders_;  // by key; null: plain numbers
  Buffer contribution_, bytes_;
  std::int64_t pushes_ = 0;
  int awaited_ = 0, flushes_ = 0;
  std::unique_ptr<ServerShard> shard_;  // null on ranks without one
};

class Kind : public ExchangeKind {
 public:
  explicit Kind(const Settings& settings) : settings_(settings) {}
  ExchangeTraits traits() const override { return {.in_lockstep = false, .orders_slices = true}; }
  std::unique_ptr<Exchange> make(ExchangeParts parts) const override {
    return std::make_unique<Server>(settings_, std::move(parts));
  }
  std::string traffic_text() const override {
    return "2 (n-1) W: every worker sends all servers their parts and gets answers, but for those on its own rank";
  }
  // Bounded staleness adds pulls, or saves answers, by how fast the workers are: this is with one answer a push.
  Traffic traffic(const Case& c) const override {
    Traffic sum;
    const double away = c.workers - 1;  // workers that are not on the server's rank
    for (const Key& k : cut_into_keys(settings_, c.workers, c.floats, c.order))
      sum = sum + away * Traffic{4, 2.0 * Mail::header_bytes + c.bytes(k.range) + c.answer_bytes(k.range)};
    return sum;
  }

 private:
  Settings settings_;
};

}  // namespace

std::unique_ptr<const ExchangeKind> server(OptionReader& options) {
  Settings s;
  const auto given = options.options().items.find("servers");
  if (given != options.options().items.end() && std::holds_alternative<std::string>(given->second.value))
    s.servers = options.choice("servers", "all", {"all"}) == "all" ? 0 : 1;
  else
    s.servers = static_cast<int>(options.integer("servers", 1, 1, 100'000));
  s.fetch = options.integer("n_fetch", 1, 1, 1'000'000);
  return std::make_unique<Kind>(s);
}

}  // namespace echelon::exchanges
