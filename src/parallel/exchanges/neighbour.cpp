// With the neighbours in a graph (parallel/exchanges/peer_graph.h). In lock-step (sync bsp) the weights from before a
// step travel while its gradient is computed; then they are mixed by the graph's matrix, and the worker's own step,
// made meanwhile, is added (D-PSGD). With sync async every worker sends when it is due and mixes what has come
// (exchanges/gossip.h).

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "kernels/vector.h"
#include "parallel/composition.h"
#include "parallel/exchanges/exchanges.h"
#include "parallel/exchanges/gossip.h"
#include "parallel/exchanges/peer_graph.h"

namespace echelon::exchanges {

namespace {

struct NeighbourHead {  // of a message in lock-step
  double weight = 0;
  std::uint64_t bytes = 0;  // of the encoded weights that follow; the rest of the message means nothing
};

class InLockstep : public Exchange {
 public:
  InLockstep(const PeerGraph& graph, ExchangeParts parts)
      : parts_(std::move(parts)),
        peer_(parts_.rule->make_peer(parts_.view())),
        coder_(parts_),
        message_((sizeof(NeighbourHead) + coder_.most_bytes() + 63) / 64 * 64),
        mixed_(parts_.floats() * sizeof(float)),
        out_(message_) {
    std::size_t most = 0;
    for (int t = 0; t < graph.cycle(); ++t) {
      cycle_.push_back(graph.round(parts_.rank(), t));
      most = std::max(most, cycle_.back().from.size());
    }
    in_ = Buffer(message_ * most);
    if (parts_.workers() > 1) group_.emplace(parts_.team->group().dup());
  }

  void before_step(const StepInfo& info) override {
    if (!info.due || parts_.workers() == 1) return;
    const PeerGraph::Round& now = round();
    const std::span<float> weights = parts_.trainer->parameters();
    std::ranges::copy(weights, mixed_.as<float>().begin());
    NeighbourHead head{.weight = peer_->give(static_cast<int>(now.to.size()), info.clock)};
    const std::span<std::byte> out = out_.as<std::byte>();
    head.bytes =
        coder_.encode(weights, {.number = rounds_, .epoch = info.epoch, .random = parts_.random("codec", info.clock)},
                      out.subspan(sizeof head));
    std::memcpy(out.data(), &head, sizeof head);
    label_ = {.number = static_cast<std::uint32_t>(rounds_)};
    for (std::size_t i = 0; i < now.from.size(); ++i)
      receives_.push_back(parts_.world->receive(now.from[i].peer, group_->channel(), label_, incoming(i)));
    for (const int to : now.to)
      sends_.push_back(parts_.world->send(to, group_->channel(), label_, out.first(message_bytes())));
  }

  double exchange(const StepInfo& info) override {
    if (parts_.workers() == 1) return 1;
    const PeerGraph::Round& now = round();
    const std::span<float> weights = parts_.trainer->parameters(), mixed = mixed_.as<float>();
    for_each_trained([&](std::size_t at, std::size_t n) {  // weights = the step that was made
      kernels::axpy(weights.data() + at, -1, mixed.data() + at, n);
    });
    WaitPolicy& wait_policy = group_->wait_policy();
    wait_policy.begin(label_, "mixing with the neighbours");
    double sum = now.own;
    for (std::size_t i = 0; i < now.from.size(); ++i) {
      const auto& [from, part] = now.from[i];
      wait_policy.wait(receives_[i], from);
      NeighbourHead head;
      std::memcpy(&head, incoming(i).data(), sizeof head);
      if (head.bytes > coder_.most_bytes()) fail("rank {} sent {} bytes of weights", from, head.bytes);
      sum += part;
      peer_->take(
          mixed, coder_.decode(incoming(i).subspan(sizeof head, head.bytes), from),
          {.weight = checked_weight(head.weight, from), .mix = part / sum, .clock = info.clock, .sent_at = info.clock});
    }
    peer_->gathered(mixed);
    for (std::size_t i = 0; i < now.to.size(); ++i) wait_policy.wait(sends_[i], now.to[i]);
    wait_policy.end();
    receives_.clear(), sends_.clear();
    for_each_trained(
        [&](std::size_t at, std::size_t n) { kernels::add_into(weights.data() + at, mixed.data() + at, n); });
    ++rounds_;
    return 1;
  }

  void drain() override {}
  double peer_weight() const override { return peer_->weight(); }

  std::vector<StateSpan> state() override {
    std::vector<StateSpan> all = coder_.state();
    add_states(all, "peer ", peer_->state());
    all.push_back(as_state("rounds", rounds_));
    return all;
  }

 private:
  const PeerGraph::Round& round() const { return cycle_[static_cast<std::size_t>(rounds_) % cycle_.size()]; }
  std::size_t message_bytes() const { return sizeof(NeighbourHead) + coder_.most_bytes(); }
  std::span<std::byte> incoming(std::size_t i) { return in_.as<std::byte>().subspan(i * message_, message_bytes()); }

  // Statistics have no step to add: they stay with their replica.
  template <typename F>
  void for_each_trained(const F& f) {
    for (const TrainedSpan& s : parts_.trainer->segments())
      if (!s.statistic) f(s.offset, s.size);
  }

  ExchangeParts parts_;
  std::unique_ptr<PeerSide> peer_;
  ModelCoder coder_;
  std::size_t message_;  // bytes from one to the next
  Buffer mixed_;         // this replica's weights from before the step, then with the others' in them
  Buffer out_, in_;
  std::vector<PeerGraph::Round> cycle_;
  std::int64_t rounds_ = 0;
  std::optional<Group> group_;  // for its channel and wait_policy; empty if alone
  Label label_;
  std::vector<Work> receives_, sends_;  // last: what they name is above
};

Circle circle_in(const PeerGraph& graph, Rank rank) {
  Circle circle;
  std::vector<std::vector<int>> to;
  std::vector<Rank> writers;
  for (int t = 0; t < graph.cycle(); ++t) {
    const PeerGraph::Round round = graph.round(rank, t);
    to.push_back(round.to);
    circle.readers.insert(circle.readers.end(), round.to.begin(), round.to.end());
    for (const PeerGraph::Link& link : round.from) writers.push_back(link.peer);
  }
  for (auto* list : {&circle.readers, &writers}) {
    std::ranges::sort(*list);
    list->erase(std::ranges::unique(*list).begin(), list->end());
  }
  circle.writers = std::move(writers);
  circle.choose = [to = std::move(to)](std::int64_t number, const Stream&, std::vector<Rank>& chosen) {
    chosen = to[static_cast<std::size_t>(number) % to.size()];
  };
  return circle;
}

struct NeighbourSettings {
  PeerGraph::Kind graph = PeerGraph::Kind::ring;
  PeerGraph::Edges edges;
  std::int64_t window = 0;
};

class NeighbourKind : public ExchangeKind {
 public:
  explicit NeighbourKind(NeighbourSettings settings) : settings_(std::move(settings)) {}
  ExchangeTraits traits() const override { return {.in_lockstep = true, .peers = true, .either_pace = true}; }
  void accepts(const Composition& c, const CompositionFacts& facts, Problems& problems) const override {
    ExchangeKind::accepts(c, facts, problems);
    refuse_common_place(c, problems);
    refuse(
        problems, !c.sync->traits().lockstep && !c.sync->traits().never_waits,
        fmt::format("between neighbours no worker knows how far all the others are, which is what sync {} needs: take "
                    "sync bsp or async",
                    c.sync_name));
  }
  std::string problem(int workers, bool) const override {
    return PeerGraph::problem(settings_.graph, workers, settings_.edges);
  }
  std::unique_ptr<Exchange> make(ExchangeParts parts) const override {
    const PeerGraph graph = graph_of(parts.workers());
    if (parts.sync->traits().lockstep) return std::make_unique<InLockstep>(graph, std::move(parts));
    Circle circle = circle_in(graph, parts.rank());
    return std::make_unique<Gossip>(std::move(parts), std::move(circle), settings_.window);
  }
  std::string messages_text() const override { return "n d; without rounds 2 n d: a header, and the weights"; }
  std::string traffic_text() const override {
    return "n d W: every worker's weights to its d neighbours (ring 2, torus 4, hypercube and halton log n, one_peer "
           "1)";
  }
  Traffic traffic(const TrafficQuery& c) const override {
    const double bytes = c.bytes({0, c.floats}), links = graph_of(c.workers).messages();
    return links * (c.sync->traits().lockstep ? Traffic{1, sizeof(NeighbourHead) + bytes}
                                              : Traffic{2, Mailbox::header_bytes + bytes});
  }

 private:
  PeerGraph graph_of(int workers) const { return {settings_.graph, workers, settings_.edges}; }
  NeighbourSettings settings_;
};

std::unique_ptr<const ExchangeKind> make_neighbour(OptionReader& options) {
  NeighbourSettings s;
  const std::vector<std::string> names = peer_graph_names();
  const auto at = std::ranges::find(names, options.choice("graph", "ring", names)) - names.begin();
  s.graph = at < std::ssize(names) ? static_cast<PeerGraph::Kind>(at) : PeerGraph::Kind::ring;
  if (s.graph == PeerGraph::Kind::edges &&
      options.require("edges", "graph file needs a list of edges; name its file with exchange.file")) {
    try {
      s.edges = parse_edges(options.text("edges", ""));
    } catch (const Error& error) {
      options.problem("edges", fmt::format("(the text of exchange.file) cannot be used: {}", error.what()));
      s.graph = PeerGraph::Kind::ring;
    }
  } else if (s.graph == PeerGraph::Kind::edges) {
    s.graph = PeerGraph::Kind::ring;
  }
  s.window = options.integer("window", 0, 0, 1'000'000);
  return std::make_unique<NeighbourKind>(std::move(s));
}

}  // namespace

ExchangePart neighbour() {
  return {{"neighbour",
           "the neighbours in a graph",
           {{"graph", "\"ring\"", "ring, torus, halton, hypercube, one_peer or file"},
            {"file", "\"\"", "a list of edges, a pair of ranks on each line"},
            {"edges", "\"\"", "the text of such a file, which a run keeps in its place"},
            {"window", "0", "messages on their way to a peer before a further one is left out; 0: by their size"}}},
          make_neighbour};
}

}  // namespace echelon::exchanges
