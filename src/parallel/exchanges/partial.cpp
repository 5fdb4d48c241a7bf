// Partial gradients (Ako): a worker adds its gradient to what it owes each peer, and each time sends every peer another
// slice of that, and a different one to each; so all of it arrives within as many exchanges as there are slices, and a
// step costs a slice a peer. What comes is added to the next own gradient. No worker waits.
//
// Peers are served in at most `most_phases` groups: those of a group are owed the same and get the same slice. A group
// with a peer whose link is still busy is left out; its debt grows meanwhile, and nothing is lost.
//
// slices = 0: the link decides. It is measured once, with all workers sending at once; then a slice is as large as fits
// into the time of a step. `drop`: a network that loses messages (Dogwild). They are not noticed and not repeated: that
// part of the gradient is lost to that peer.
//
// `racing`: the cores of a worker are threads that race on its weights, each moving them as soon as it has a gradient,
// without a lock (Dogwild's nodes); what comes from others is added after each batch.

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernels/vector.h"
#include "parallel/composition.h"
#include "parallel/exchanges/exchanges.h"
#include "parallel/exchanges/gossip.h"
#include "parallel/exchanges/measured_link.h"
#include "parallel/team/message_wait.h"

namespace echelon::exchanges {

namespace {

constexpr int most_phases = 8;
constexpr int most_slices = 1024;
enum PartialMessageType : std::uint16_t { partial_slice, partial_flush };

struct PartialSettings {
  int slices = 0;  // 0: as the link allows
  double drop = 0;
  std::int64_t window = 0;
  bool racing = false;
};

class Partial : public Exchange {
 public:
  Partial(const PartialSettings& settings, ExchangeParts parts)
      : settings_(settings),
        parts_(std::move(parts)),
        worker_(parts_.rule->make_worker(parts_.view())),
        peers_(parts_.workers() - 1),
        most_(static_cast<int>(std::min<std::size_t>(most_slices, parts_.floats()))),
        phases_(std::min({peers_, most_phases, settings.slices == 0 ? most_phases : settings.slices})),
        total_(parts_.floats() * sizeof(float)),
        arrived_(parts_.floats() * sizeof(float)),
        sent_(static_cast<std::size_t>(phases_)),
        message_wait_(*parts_.team, *parts_.mailbox),
        flushed_(static_cast<std::size_t>(parts_.workers())) {
    settings_.slices = std::min(settings_.slices, most_);
    for (int f = 0; f < phases_; ++f) owed_.emplace_back(parts_.floats() * sizeof(float));
    if (settings_.slices == 0 && peers_ > 0) bandwidth_ = measure_link(parts_).bandwidth;
    if (!parts_.codec) return;
    std::size_t most = 0;
    for (int s = 0; s < settings_.slices; ++s) {
      const auto pieces = parts_.pieces(part_of(s, settings_.slices, parts_.floats()));
      decoders_.push_back(parts_.codec(pieces));
      most = std::max(most, decoders_.back()->most_bytes());
      for (int f = 0; f < phases_; ++f) encoders_.push_back(parts_.codec(pieces));
    }
    bytes_ = Buffer(most);
  }

  void before_step(const StepInfo& info) override {
    if (settings_.racing) parts_.trainer->hooks().race_rate = info.lr * info.share;
  }

  double exchange(const StepInfo& info) override {
    const double now = parts_.world->now();
    if (last_ > 0) usual_step_ = usual_step_ > 0 ? 0.9 * usual_step_ + 0.1 * (now - last_) : now - last_;
    last_ = now;
    const std::span<float> total = total_.as<float>(), arrived = arrived_.as<float>();
    const Range all{0, total.size()};
    worker_->contribute(all, info.share, total);
    for (Buffer& owed : owed_) kernels::add_into(owed.as<float>().data(), total.data(), total.size());
    for (int f = 0; f < phases_; ++f) send_slice(f, info);
    Message message;
    while (parts_.mailbox->try_take(worker_tag, message)) take(message);
    if (settings_.racing)  // the own part has moved the weights already
      kernels::copy(total.data(), arrived.data(), total.size());
    else
      kernels::add_into(total.data(), arrived.data(), total.size());
    kernels::fill(arrived.data(), 0, arrived.size());
    worker_->apply(all, total);
    return 1;
  }

  void drain() override {
    for (int k = 0; k < peers_; ++k) parts_.mailbox->post(peer(k), {.kind = partial_flush, .tag = worker_tag});
    const auto missing = [&] {
      for (int k = 0; k < peers_; ++k)
        if (!flushed_[static_cast<std::size_t>(peer(k))]) return peer(k);
      return -1;
    };
    while (missing() >= 0) {
      Message message;
      message_wait_.take(worker_tag, message, "that is its last of the round", missing);
      take(message);
    }
    std::ranges::fill(flushed_, 0);
    last_ = 0;
  }

  std::vector<StateSpan> state() override {
    std::vector<StateSpan> all;
    add_states(all, "worker ", worker_->state());
    for (std::size_t f = 0; f < owed_.size(); ++f) all.push_back(as_state(fmt::format("owed {}", f), owed_[f]));
    for (std::size_t i = 0; i < encoders_.size(); ++i)
      add_states(all, fmt::format("codec {} ", i), encoders_[i]->state());
    all.push_back(as_state("arrived", arrived_));
    all.push_back(as_state("sent", sent_));
    all.push_back(as_state("usual step", usual_step_));
    return all;
  }

 private:
  Rank peer(int k) const { return (parts_.rank() + 1 + k) % parts_.workers(); }

  int slices() const {
    if (settings_.slices > 0) return settings_.slices;
    if (usual_step_ <= 0) return std::clamp(peers_, 1, most_);
    const double wanted = static_cast<double>(peers_) * static_cast<double>(parts_.floats() * sizeof(float));
    return static_cast<int>(
        std::clamp(std::ceil(wanted / (bandwidth_ * usual_step_)), 1.0, static_cast<double>(most_)));
  }

  void send_slice(int phase, const StepInfo& info) {
    const int count = slices();
    const std::size_t window =
        window_for(settings_.window, parts_.floats() * sizeof(float) / static_cast<std::size_t>(count));
    for (int k = phase; k < peers_; k += phases_)
      if (parts_.mailbox->on_their_way(peer(k)) >= window) return;
    std::int64_t& sent = sent_[static_cast<std::size_t>(phase)];
    const auto slice = static_cast<int>((sent + phase) % count);
    const Range range = part_of(slice, count, parts_.floats());
    const std::span<float> owed =
        owed_[static_cast<std::size_t>(phase)].as<float>().subspan(range.begin, range.count());
    std::span<const std::byte> bytes = std::as_bytes(owed);
    if (!encoders_.empty()) {
      const CodecStep step{.number = sent / count,
                           .epoch = info.epoch,
                           .random = parts_.random("codec", info.clock * most_phases + phase)};
      bytes = bytes_.as<std::byte>().first(
          encoders_[static_cast<std::size_t>(slice * phases_ + phase)]->encode(owed, step, bytes_.as<std::byte>()));
    }
    const Stream random = parts_.random("drop", info.clock);
    for (int k = phase; k < peers_; k += phases_)
      if (random.uniform(static_cast<std::uint64_t>(k)) >= static_cast<float>(settings_.drop))
        parts_.mailbox->post(peer(k),
                             {.kind = partial_slice,
                              .tag = worker_tag,
                              .key = static_cast<std::uint32_t>(slice),
                              .clock = info.clock,
                              .second = static_cast<std::uint64_t>(count)},
                             bytes);
    kernels::fill(owed.data(), 0, owed.size());
    ++sent;
  }

  void take(const Message& message) {
    if (message.head.kind == partial_flush) {
      flushed_[static_cast<std::size_t>(message.from)] = 1;
      return;
    }
    const auto slice = message.head.key;
    const auto count = message.head.second;
    if (message.head.kind != partial_slice || count < 1 || count > static_cast<std::uint64_t>(most_) ||
        slice >= count || (settings_.slices > 0 && count != static_cast<std::uint64_t>(settings_.slices)))
      fail("rank {} sent slice {} of {} in a message of kind {}", message.from, slice, count, message.head.kind);
    const Range range = part_of(static_cast<int>(slice), static_cast<int>(count), parts_.floats());
    const std::span<float> into = arrived_.as<float>().subspan(range.begin, range.count());
    if (!decoders_.empty()) return decoders_[slice]->add(message.payload(), 1, into);
    if (message.floats().size() != range.count())
      fail("rank {} sent a slice of {} numbers", message.from, message.floats().size());
    kernels::add_into(into.data(), message.floats().data(), into.size());
  }

  PartialSettings settings_;
  ExchangeParts parts_;
  std::unique_ptr<WorkerSide> worker_;
  int peers_, most_, phases_;
  Buffer total_, arrived_, bytes_;
  std::vector<Buffer> owed_;                                 // by phase: what its peers have not been sent
  std::vector<std::int64_t> sent_;                           // slices, by phase
  std::vector<std::unique_ptr<Codec>> encoders_, decoders_;  // by slice and phase; by slice
  double bandwidth_ = 0, usual_step_ = 0, last_ = 0;         // bytes a second; seconds
  MessageWait message_wait_;
  std::vector<char> flushed_;  // by rank: its last message of the round has come
};

class PartialKind : public ExchangeKind {
 public:
  explicit PartialKind(const PartialSettings& settings) : settings_(settings) {}
  ExchangeTraits traits() const override {
    return {.in_lockstep = false,
            .adds_what_comes = true,
            .replicas_differ = true,
            .cores_race = settings_.racing,
            .by_clock = settings_.slices == 0};
  }
  void accepts(const Composition& c, const CompositionFacts& facts, Problems& problems) const override {
    ExchangeKind::accepts(c, facts, problems);
    refuse(problems, !c.rule->traits().answers_mean,
           fmt::format("exchange partial adds contributions to each worker's own as they come, but rule {} makes "
                       "something else of them: take rule grad_mean, or exchange server",
                       c.rule_name));
    refuse(problems, settings_.racing && facts.split,
           "exchange.racing has the cores of a rank move one copy of the weights, and a split replica has stages on "
           "several: leave out exchange.racing, or --plan");
    refuse(
        problems, settings_.racing && facts.has_momentum,
        "with exchange.racing every shard's gradient moves the weights by itself, without a momentum: take optim.name "
        "sgd");
    refuse(problems, !c.sync->traits().never_waits,
           fmt::format(
               "in exchange partial no worker waits for another one, so sync {} has no meaning there: take sync async",
               c.sync_name));
  }
  std::string problem(int, bool has_codec) const override {
    if (!has_codec || settings_.slices > 0) return {};
    return "a codec remembers what it has left out of each slice, so slices must stay as they are: set "
           "exchange.slices to their number, or take codec none";
  }
  std::unique_ptr<Exchange> make(ExchangeParts parts) const override {
    return std::make_unique<Partial>(settings_, std::move(parts));
  }
  std::string messages_text() const override {
    return "2 n (n-1): a header, and the slice; of these the share `drop` is lost";
  }
  std::string traffic_text() const override {
    return "n (n-1) W / p: one of p slices from each to each (p = 1 with slices = 0 and a link that is fast enough)";
  }
  Exactness traffic_exactness() const override {
    return settings_.slices == 0 ? Exactness::most : settings_.drop > 0 ? Exactness::mean : Exactness::exact;
  }
  Traffic traffic(const TrafficQuery& c) const override {
    const int slices = std::max(1, settings_.slices);
    double bytes = 0;  // of a slice, in the mean
    for (int s = 0; s < slices; ++s) bytes += c.bytes(part_of(s, slices, c.floats)) / slices;
    return c.workers * (c.workers - 1.0) * (1 - settings_.drop) * Traffic{2, Mailbox::header_bytes + bytes};
  }

 private:
  PartialSettings settings_;
};

std::unique_ptr<const ExchangeKind> make_partial(OptionReader& options) {
  PartialSettings s;
  s.slices = static_cast<int>(options.integer("slices", 0, 0, most_slices));
  s.drop = options.number("drop", 0, 0, 0.99);
  s.window = options.integer("window", 0, 0, 1'000'000);
  s.racing = options.flag("racing", false);
  return std::make_unique<PartialKind>(s);
}

}  // namespace

ExchangePart partial() {
  return {{"partial",
           "each round another slice of the gradient goes to each peer",
           {{"slices", "0", "parts of a gradient; 0: as the bandwidth allows"},
            {"drop", "0", "share of the messages that the network loses"},
            {"racing", "false", "a worker's cores race on its weights, without a lock"},
            {"window", "0", "messages on their way to a peer before a further one is left out; 0: by their size"}}},
          make_partial};
}

}  // namespace echelon::exchanges
