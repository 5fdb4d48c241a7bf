// Messages to one other worker, drawn anew each time (gossip).

#include "parallel/composition.h"
#include "parallel/exchanges/exchanges.h"
#include "parallel/exchanges/gossip.h"

namespace echelon::exchanges {

namespace {

Circle any_worker(Rank rank, int workers) {
  Circle circle;
  for (Rank r = 0; r < workers; ++r)
    if (r != rank) circle.readers.push_back(r);
  circle.writers = circle.readers;
  circle.choose = [rank, workers](std::int64_t, const Stream& random, std::vector<Rank>& to) {
    to.clear();
    if (workers < 2) return;
    const auto drawn = static_cast<Rank>(random.below(static_cast<std::uint32_t>(workers - 1), 0));
    to.push_back(drawn < rank ? drawn : drawn + 1);
  };
  return circle;
}

class RandomPeerKind : public ExchangeKind {
 public:
  explicit RandomPeerKind(std::int64_t window) : window_(window) {}
  ExchangeTraits traits() const override { return {.in_lockstep = false, .peers = true}; }
  void accepts(const Composition& c, const CompositionFacts& facts, Problems& problems) const override {
    ExchangeKind::accepts(c, facts, problems);
    refuse_common_place(c, problems);
    refuse(problems, !c.sync->traits().never_waits,
           fmt::format(
               "in exchange random_peer no worker waits for another one, so sync {} has no meaning there: take sync "
               "async, or exchange neighbour with graph one_peer",
               c.sync_name));
  }
  std::unique_ptr<Exchange> make(ExchangeParts parts) const override {
    Circle circle = any_worker(parts.rank(), parts.workers());
    return std::make_unique<Gossip>(std::move(parts), std::move(circle), window_);
  }
  std::string messages_text() const override { return "2 n: a header, and the weights"; }
  std::string traffic_text() const override { return "n W: each worker that takes part sends one message"; }
  Traffic traffic(const TrafficQuery& c) const override {
    if (c.workers < 2) return {};
    return static_cast<double>(c.workers) * Traffic{2, Mailbox::header_bytes + c.bytes({0, c.floats})};
  }

 private:
  std::int64_t window_;
};

std::unique_ptr<const ExchangeKind> make_random_peer(OptionReader& options) {
  return std::make_unique<RandomPeerKind>(options.integer("window", 0, 0, 1'000'000));
}

}  // namespace

ExchangePart random_peer() {
  return {{"random_peer",
           "one other worker, drawn at random",
           {{"window", "0", "messages on their way to a peer before a further one is left out; 0: by their size"}}},
          make_random_peer};
}

}  // namespace echelon::exchanges
