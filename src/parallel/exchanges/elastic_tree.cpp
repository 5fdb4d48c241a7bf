// Workers in a tree, each drawn to its parent and its children by an elastic force (TreeEASGD, Zhang). Every `tau`
// steps a worker shows its weights to its parent, and every `tau_down` steps to its children. A worker that is shown
// weights moves towards them and answers with the force, which then moves the other one by as much the other way: along
// every edge forces cancel, and the mean of all workers stays where it is. No worker waits; one that has not been
// answered yet shows nothing more to that neighbour.

#include <algorithm>

#include "collective/collectives.h"
#include "parallel/composition.h"
#include "parallel/exchanges/exchanges.h"
#include "parallel/exchanges/overlay.h"
#include "parallel/team/message_wait.h"

namespace echelon::exchanges {

namespace {

enum ElasticTreeMessageType : std::uint16_t {
  shown,  // weights
  force,  // by which the shown weights are to be drawn
  done,   // nothing more is shown in this run
};

struct ElasticTreeSettings {
  int fanout = 2;
};

class ElasticTree : public Exchange {
 public:
  ElasticTree(const ElasticTreeSettings& settings, ExchangeParts parts)
      : settings_(settings),
        parts_(std::move(parts)),
        worker_(parts_.rule->make_worker(parts_.view())),
        shared_(parts_.rule->make_shared(parts_.place({0, parts_.floats()}))),
        out_(parts_.floats() * sizeof(float)),
        message_wait_(*parts_.team, *parts_.mailbox) {
    const Overlay tree{.kind = Overlay::Kind::tree, .fanout = settings.fanout};
    const std::vector<int> hosts(static_cast<std::size_t>(parts_.workers()));
    parent_ = parent_of(tree, parts_.rank(), 0, hosts);
    children_ = children_of(tree, parts_.rank(), 0, hosts);
  }

  void before_step(const StepInfo&) override {
    Message message;
    while (parts_.mailbox->try_take(worker_tag, message)) take(message);
  }

  double exchange(const StepInfo& info) override {  // when.tau is the period of the way up
    if (parent_ >= 0) show(parent_, info.clock);
    return 1;
  }

  void after_step(const StepInfo& info) override {
    ++steps_;
    if (steps_ % (parts_.when.tau_down > 0 ? parts_.when.tau_down : parts_.when.tau) == 0)
      for (const Rank child : children_) show(child, info.clock);
  }

  // A worker that has said `done` shows nothing more; until all its neighbours have said so, they are still answered.
  void leave() override {
    while (!unanswered_.empty()) take_next([this] { return unanswered_.front(); });
    if (parent_ >= 0) parts_.mailbox->post(parent_, {.kind = done, .tag = worker_tag});
    for (const Rank child : children_) parts_.mailbox->post(child, {.kind = done, .tag = worker_tag});
    const auto missing = [this] {
      if (parent_ >= 0 && std::ranges::find(done_, parent_) == done_.end()) return parent_;
      for (const Rank child : children_)
        if (std::ranges::find(done_, child) == done_.end()) return child;
      return -1;
    };
    while (missing() >= 0) take_next(missing);
    done_.clear();
  }

  void drain() override { barrier(parts_.team->group(), "the end of a round"); }

  std::vector<StateSpan> state() override {
    std::vector<StateSpan> all;
    add_states(all, "worker ", worker_->state());
    all.push_back(as_state("steps", steps_));
    return all;
  }

  // The root's weights are the centre of the tree.
  void read_model(std::span<float> out) override {
    std::ranges::copy(parts_.trainer->parameters(), out.begin());
    broadcast(parts_.team->group(), typed_span(out), 0, "the root's model");
  }

 private:
  void show(Rank to, std::int64_t clock) {
    if (std::ranges::find(unanswered_, to) != unanswered_.end()) return;  // forces of old weights would add up
    const std::span<float> out = out_.as<float>();
    worker_->contribute({0, out.size()}, 1, out);
    parts_.mailbox->post(to, {.kind = shown, .tag = worker_tag, .clock = clock}, std::span<const float>(out));
    unanswered_.push_back(to);
  }

  void take_next(const std::function<Rank()>& whom) {
    Message message;
    message_wait_.take(worker_tag, message, "that is its last of the round", whom);
    take(message);
  }

  void take(Message& message) {
    if (message.from != parent_ && std::ranges::find(children_, message.from) == children_.end())
      fail("rank {} is no neighbour in the tree", message.from);
    if (message.head.kind == done) {
      done_.push_back(message.from);
      return;
    }
    const std::span<const float> values = message.floats();
    const std::span<float> weights = parts_.trainer->parameters();
    if (values.size() != weights.size()) fail("rank {} sent {} numbers", message.from, values.size());
    const Range all{0, weights.size()};
    if (message.head.kind == force) {
      worker_->apply(all, values);
      std::erase(unanswered_, message.from);
    } else if (message.head.kind == shown) {  // this worker is the centre of the pair
      std::ranges::copy(weights, shared_->movable().begin());
      shared_->absorb(values, {.from = message.from, .clock = message.head.clock});
      std::ranges::copy(shared_->movable(), weights.begin());
      parts_.mailbox->post(message.from, {.kind = force, .tag = worker_tag}, shared_->answer());
    } else {
      fail("rank {} sent a worker a message of kind {}", message.from, message.head.kind);
    }
  }

  ElasticTreeSettings settings_;
  ExchangeParts parts_;
  std::unique_ptr<WorkerSide> worker_;
  std::unique_ptr<SharedSide> shared_;
  Buffer out_;
  Rank parent_ = -1;
  std::vector<Rank> children_;
  std::int64_t steps_ = 0;
  std::vector<Rank> unanswered_;  // neighbours that have been shown weights and have not answered
  std::vector<Rank> done_;        // neighbours that show nothing more in this round
  MessageWait message_wait_;
};

class ElasticTreeKind : public ExchangeKind {
 public:
  explicit ElasticTreeKind(const ElasticTreeSettings& settings) : settings_(settings) {}
  ExchangeTraits traits() const override { return {.in_lockstep = false, .plain_numbers = true, .two_periods = true}; }
  void accepts(const Composition& c, const CompositionFacts& facts, Problems& problems) const override {
    ExchangeKind::accepts(c, facts, problems);
    const RuleTraits rule = c.rule->traits();
    refuse(problems, !(rule.movable && rule.quantity == RuleTraits::Quantity::weights),
           fmt::format("exchange elastic_tree has workers that draw each other, but rule {} needs a place where "
                       "contributions meet: take rule elastic, or exchange server",
                       c.rule_name));
    refuse(problems, !c.sync->traits().never_waits,
           "in exchange elastic_tree no worker waits for another one: take sync async");
  }
  std::unique_ptr<Exchange> make(ExchangeParts parts) const override {
    return std::make_unique<ElasticTree>(settings_, std::move(parts));
  }
  std::string messages_text() const override {
    return "4 (n-1) every tau steps and 4 (n-1) every tau_down: a header, and the numbers";
  }
  std::string traffic_text() const override {
    return "2 (n-1) 4F every tau steps and 2 (n-1) 4F every tau_down: weights along each edge, and forces back";
  }
  Traffic traffic(const TrafficQuery& c) const override {
    const double edges = c.workers - 1;
    const Traffic both{4, 2.0 * Mailbox::header_bytes + 8.0 * static_cast<double>(c.floats)};
    // In one exchange of the way up; the other way has its own period.
    const double down =
        c.when.tau_down > 0 ? static_cast<double>(c.when.tau) / static_cast<double>(c.when.tau_down) : 1;
    Traffic sum = (edges * (1 + down)) * both;
    sum.at_most = true;  // a worker that has not been answered yet leaves one out
    return sum;
  }

 private:
  ElasticTreeSettings settings_;
};

std::unique_ptr<const ExchangeKind> make_elastic_tree(OptionReader& options) {
  ElasticTreeSettings s;
  s.fanout = static_cast<int>(options.integer("fanout", s.fanout, 1, 10'000));
  return std::make_unique<ElasticTreeKind>(s);
}

}  // namespace

ExchangePart elastic_tree() {
  return {{"elastic_tree",
           "parent and children in a tree, shown each other's weights",
           {{"fanout", "2", "children of each"}}},
          make_elastic_tree};
}

}  // namespace echelon::exchanges
