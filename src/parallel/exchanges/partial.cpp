// Partial gradients (Ako): a worker adds its gradient to what it owes each peer, and each time sends every peer another
// slice of that, and a different one to each; so all of it arrives within as many exchanges as there are slices, and a
// step costs a slice a peer. What comes is added to the next own gradient. Nobody waits.
//
// Peers are served in at most `most_phases` groups: those of a group are owed the same and get the same slice. A group
// with a peer whose link is still busy is left out; its debt grows meanwhile, and nothing is lost.
//
// slices = 0: the link decides. It is measured once, with everybody sending at once; then a slice is as large as fits
// into the time of a step. `drop`: an experiment with a network that loses letters (Dogwild). Nobody notices or repeats
// them: that part of the gradient is lost to that peer.

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "collective/collectives.h"
#include "kernels/vector.h"
#include "parallel/exchanges/exchanges.h"
#include "parallel/exchanges/gossip.h"
#include "parallel/letters.h"

namespace echelon::exchanges {

namespace {

constexpr int most_phases = 8;
constexpr int most_slices = 1024;
enum LetterKind : std::uint16_t { slice_letter, flush_letter };

struct Settings {
  int slices = 0;  // 0: as the link allows
  double drop = 0;
  std::int64_t window = 0;
};

class Partial : public Exchange {
 public:
  Partial(const Settings& settings, ExchangeParts parts)
      : settings_(settings),
        parts_(std::move(parts)),
        worker_(parts_.rule->make_worker(parts_.view())),
        peers_(parts_.workers() - 1),
        most_(static_cast<int>(std::min<std::size_t>(most_slices, parts_.floats()))),
        phases_(std::min({peers_, most_phases, settings.slices == 0 ? most_phases : settings.slices})),
        total_(parts_.floats() * sizeof(float)),
        arrived_(parts_.floats() * sizeof(float)),
        sent_(static_cast<std::size_t>(phases_)),
        patience_(*parts_.crew, *parts_.mail),
        flushed_(static_cast<std::size_t>(parts_.workers())) {
    settings_.slices = std::min(settings_.slices, most_);
    for (int f = 0; f < phases_; ++f) owed_.emplace_back(parts_.floats() * sizeof(float));
    if (settings_.slices == 0 && peers_ > 0) bandwidth_ = measured_bandwidth();
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

  double exchange(const StepMoment& moment) override {
    const double now = parts_.world->now();
    if (last_ > 0) usual_step_ = usual_step_ > 0 ? 0.9 * usual_step_ + 0.1 * (now - last_) : now - last_;
    last_ = now;
    const std::span<float> total = total_.as<float>(), arrived = arrived_.as<float>();
    const Range all{0, total.size()};
    worker_->contribute(all, moment.share, total);
    for (Buffer& owed : owed_) kernels::add_into(owed.as<float>().data(), total.data(), total.size());
    for (int f = 0; f < phases_; ++f) send_slice(f, moment);
    Letter letter;
    while (parts_.mail->try_take(worker_box, letter)) take(letter);
    kernels::add_into(total.data(), arrived.data(), total.size());
    kernels::fill(arrived.data(), 0, arrived.size());
    worker_->apply(all, total);
    return 1;
  }

  void settle() override {
    for (int k = 0; k < peers_; ++k) parts_.mail->post(peer(k), {.kind = flush_letter, .box = worker_box});
    const auto missing = [&] {
      for (int k = 0; k < peers_; ++k)
        if (!flushed_[static_cast<std::size_t>(peer(k))]) return peer(k);
      return -1;
    };
    while (missing() >= 0) {
      Letter letter;
      patience_.take(worker_box, letter, "that is its last of the round", missing);
      take(letter);
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

  // Bytes a second that this worker may send while all others do the same; the same answer on all ranks.
  double measured_bandwidth() {
    const auto n = static_cast<std::size_t>(parts_.workers());
    const std::size_t each = std::max<std::size_t>((1 << 20) / n, 4096);
    Buffer out(n * each), in(n * each);
    Group& group = parts_.crew->group();
    double seconds = 0;
    for (int i = 0; i < 2; ++i) {  // the first one warms up
      barrier(group, "measuring the link");
      const double begin = parts_.world->now();
      all_to_all(group, const_numbers(std::span<const std::byte>(out.as<std::byte>())), numbers(in.as<std::byte>()),
                 "measuring the link");
      seconds = parts_.world->now() - begin;
    }
    std::vector<double> rates(n);
    rates[static_cast<std::size_t>(parts_.rank())] = static_cast<double>((n - 1) * each) / std::max(seconds, 1e-9);
    parts_.crew->share(rates, std::vector<std::size_t>(n, 1));
    return std::ranges::min(rates);
  }

  int slices() const {
    if (settings_.slices > 0) return settings_.slices;
    if (usual_step_ <= 0) return std::clamp(peers_, 1, most_);
    const double wanted = static_cast<double>(peers_) * static_cast<double>(parts_.floats() * sizeof(float));
    return static_cast<int>(
        std::clamp(std::ceil(wanted / (bandwidth_ * usual_step_)), 1.0, static_cast<double>(most_)));
  }

  void send_slice(int phase, const StepMoment& moment) {
    const int count = slices();
    const std::size_t window =
        window_for(settings_.window, parts_.floats() * sizeof(float) / static_cast<std::size_t>(count));
    for (int k = phase; k < peers_; k += phases_)
      if (parts_.mail->on_their_way(peer(k)) >= window) return;
    std::int64_t& sent = sent_[static_cast<std::size_t>(phase)];
    const auto slice = static_cast<int>((sent + phase) % count);
    const Range range = part_of(slice, count, parts_.floats());
    const std::span<float> owed =
        owed_[static_cast<std::size_t>(phase)].as<float>().subspan(range.begin, range.count());
    std::span<const std::byte> bytes = std::as_bytes(owed);
    if (!encoders_.empty()) {
      const CodecStep step{.number = sent / count,
                           .epoch = moment.epoch,
                           .random = parts_.random("codec", moment.clock * most_phases + phase)};
      bytes = bytes_.as<std::byte>().first(
          encoders_[static_cast<std::size_t>(slice * phases_ + phase)]->encode(owed, step, bytes_.as<std::byte>()));
    }
    const Stream random = parts_.random("drop", moment.clock);
    for (int k = phase; k < peers_; k += phases_)
      if (random.uniform(static_cast<std::uint64_t>(k)) >= static_cast<float>(settings_.drop))
        parts_.mail->post(peer(k),
                          {.kind = slice_letter,
                           .box = worker_box,
                           .key = static_cast<std::uint32_t>(slice),
                           .clock = moment.clock,
                           .second = static_cast<std::uint64_t>(count)},
                          bytes);
    kernels::fill(owed.data(), 0, owed.size());
    ++sent;
  }

  void take(const Letter& letter) {
    if (letter.head.kind == flush_letter) {
      flushed_[static_cast<std::size_t>(letter.from)] = 1;
      return;
    }
    const auto slice = letter.head.key;
    const auto count = letter.head.second;
    if (letter.head.kind != slice_letter || count < 1 || count > static_cast<std::uint64_t>(most_) || slice >= count ||
        (settings_.slices > 0 && count != static_cast<std::uint64_t>(settings_.slices)))
      fail("rank {} sent slice {} of {} in a letter of kind {}", letter.from, slice, count, letter.head.kind);
    const Range range = part_of(static_cast<int>(slice), static_cast<int>(count), parts_.floats());
    const std::span<float> into = arrived_.as<float>().subspan(range.begin, range.count());
    if (!decoders_.empty()) return decoders_[slice]->add(letter.payload(), 1, into);
    if (letter.floats().size() != range.count())
      fail("rank {} sent a slice of {} numbers", letter.from, letter.floats().size());
    kernels::add_into(into.data(), letter.floats().data(), into.size());
  }

  Settings settings_;
  ExchangeParts parts_;
  std::unique_ptr<WorkerSide> worker_;
  int peers_, most_, phases_;
  Buffer total_, arrived_, bytes_;
  std::vector<Buffer> owed_;                                 // by phase: what its peers have not been sent
  std::vector<std::int64_t> sent_;                           // slices, by phase
  std::vector<std::unique_ptr<Codec>> encoders_, decoders_;  // by slice and phase; by slice
  double bandwidth_ = 0, usual_step_ = 0, last_ = 0;         // bytes a second; seconds
  LetterPatience patience_;
  std::vector<char> flushed_;  // by rank: its last letter of the round has come
};

class Kind : public ExchangeKind {
 public:
  explicit Kind(const Settings& settings) : settings_(settings) {}
  ExchangeTraits traits() const override {
    return {.in_lockstep = false, .adds_what_comes = true, .replicas_differ = true};
  }
  std::string problem(int, bool has_codec) const override {
    if (!has_codec || settings_.slices > 0) return {};
    return "a codec remembers what it has left out of each slice, so slices must stay as they are: set "
           "exchange.slices to their number, or take codec none";
  }
  std::unique_ptr<Exchange> make(ExchangeParts parts) const override {
    return std::make_unique<Partial>(settings_, std::move(parts));
  }
  std::string traffic_text() const override {
    return "n (n-1) W / p: one of p slices from each to each (p = 1 with slices = 0 and a link that is fast enough)";
  }
  Exactness traffic_exactness() const override {
    return settings_.slices == 0 ? Exactness::most : settings_.drop > 0 ? Exactness::mean : Exactness::exact;
  }
  Traffic traffic(const Case& c) const override {
    const int slices = std::max(1, settings_.slices);
    double bytes = 0;  // of a slice, in the mean
    for (int s = 0; s < slices; ++s) bytes += c.bytes(part_of(s, slices, c.floats)) / slices;
    return c.workers * (c.workers - 1.0) * (1 - settings_.drop) * Traffic{2, Mail::header_bytes + bytes};
  }

 private:
  Settings settings_;
};

}  // namespace

std::unique_ptr<const ExchangeKind> partial(OptionReader& options) {
  Settings s;
  s.slices = static_cast<int>(options.integer("slices", 0, 0, most_slices));
  s.drop = options.number("drop", 0, 0, 0.99);
  s.window = options.integer("window", 0, 0, 1'000'000);
  return std::make_unique<Kind>(s);
}

}  // namespace echelon::exchanges
