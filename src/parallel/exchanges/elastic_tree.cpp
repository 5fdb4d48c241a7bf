// Workers in a tree, each drawn to its parent and its children by an elastic force (TreeEASGD, Zhang). Every `tau`
// steps a worker shows its weights to its parent, and every `tau_down` steps to its children. Whoever is shown some
// moves towards them and answers with the force, which then moves the other one by as much the other way: along every
// edge forces cancel, and what all workers have in common stays where it is. Nobody waits; who has not been answered
// yet shows nothing more to that neighbour.

#include <algorithm>

#include "collective/collectives.h"
#include "parallel/exchanges/exchanges.h"
#include "parallel/exchanges/overlay.h"
#include "parallel/letters.h"

namespace echelon::exchanges {

namespace {

enum LetterKind : std::uint16_t {
  shown,  // weights
  force,  // by which the shown weights are to be drawn
  done,   // nothing more is shown in this run
};

struct Settings {
  int fanout = 2;
  std::int64_t tau_down = 0;  // 0: as tau
};

class ElasticTree : public Exchange {
 public:
  ElasticTree(const Settings& settings, ExchangeParts parts)
      : settings_(settings),
        parts_(std::move(parts)),
        worker_(parts_.rule->make_worker(parts_.view())),
        shared_(parts_.rule->make_shared(parts_.place({0, parts_.floats()}))),
        out_(parts_.floats() * sizeof(float)),
        patience_(*parts_.crew, *parts_.mail) {
    const Overlay tree{.kind = Overlay::Kind::tree, .fanout = settings.fanout};
    const std::vector<int> hosts(static_cast<std::size_t>(parts_.workers()));
    parent_ = parent_of(tree, parts_.rank(), 0, hosts);
    children_ = children_of(tree, parts_.rank(), 0, hosts);
  }

  void before_step(const StepMoment&) override {
    Letter letter;
    while (parts_.mail->try_take(worker_box, letter)) take(letter);
  }

  double exchange(const StepMoment& moment) override {  // the period is the way up's
    if (parent_ >= 0) show(parent_, moment.clock);
    return 1;
  }

  void after_step(const StepMoment& moment) override {
    ++steps_;
    if (steps_ % (settings_.tau_down > 0 ? settings_.tau_down : parts_.period.tau) == 0)
      for (const Rank child : children_) show(child, moment.clock);
  }

  // Whoever has said `done` shows nothing more; until all neighbours have, they are still answered.
  void leave() override {
    while (!unanswered_.empty()) take_next([this] { return unanswered_.front(); });
    if (parent_ >= 0) parts_.mail->post(parent_, {.kind = done, .box = worker_box});
    for (const Rank child : children_) parts_.mail->post(child, {.kind = done, .box = worker_box});
    const auto missing = [this] {
      if (parent_ >= 0 && std::ranges::find(done_, parent_) == done_.end()) return parent_;
      for (const Rank child : children_)
        if (std::ranges::find(done_, child) == done_.end()) return child;
      return -1;
    };
    while (missing() >= 0) take_next(missing);
    done_.clear();
  }

  void settle() override { barrier(parts_.crew->group(), "the end of a round"); }

  std::vector<StateSpan> state() override {
    std::vector<StateSpan> all;
    add_states(all, "worker ", worker_->state());
    all.push_back(as_state("steps", steps_));
    return all;
  }

  // The root's weights are the centre of the tree.
  void read_model(std::span<float> out) override {
    std::ranges::copy(parts_.trainer->parameters(), out.begin());
    broadcast(parts_.crew->group(), numbers(out), 0, "the root's model");
  }

 private:
  void show(Rank to, std::int64_t clock) {
    if (std::ranges::find(unanswered_, to) != unanswered_.end()) return;  // forces of old weights would add up
    const std::span<float> out = out_.as<float>();
    worker_->contribute({0, out.size()}, 1, out);
    parts_.mail->post(to, {.kind = shown, .box = worker_box, .clock = clock}, std::span<const float>(out));
    unanswered_.push_back(to);
  }

  void take_next(const std::function<Rank()>& whom) {
    Letter letter;
    patience_.take(worker_box, letter, "that is its last of the round", whom);
    take(letter);
  }

  void take(Letter& letter) {
    if (letter.from != parent_ && std::ranges::find(children_, letter.from) == children_.end())
      fail("rank {} is no neighbour in the tree", letter.from);
    if (letter.head.kind == done) {
      done_.push_back(letter.from);
      return;
    }
    const std::span<const float> values = letter.floats();
    const std::span<float> weights = parts_.trainer->parameters();
    if (values.size() != weights.size()) fail("rank {} sent {} numbers", letter.from, values.size());
    const Range all{0, weights.size()};
    if (letter.head.kind == force) {
      worker_->apply(all, values);
      std::erase(unanswered_, letter.from);
    } else if (letter.head.kind == shown) {  // this worker is the centre of the pair
      std::ranges::copy(weights, shared_->movable().begin());
      shared_->absorb(values, {.from = letter.from, .clock = letter.head.clock});
      std::ranges::copy(shared_->movable(), weights.begin());
      parts_.mail->post(letter.from, {.kind = force, .box = worker_box}, shared_->answer());
    } else {
      fail("rank {} sent a worker a letter of kind {}", letter.from, letter.head.kind);
    }
  }

  Settings settings_;
  ExchangeParts parts_;
  std::unique_ptr<WorkerSide> worker_;
  std::unique_ptr<SharedSide> shared_;
  Buffer out_;
  Rank parent_ = -1;
  std::vector<Rank> children_;
  std::int64_t steps_ = 0;
  std::vector<Rank> unanswered_;  // neighbours that have been shown weights and have not answered
  std::vector<Rank> done_;        // neighbours that show nothing more in this round
  LetterPatience patience_;
};

class Kind : public ExchangeKind {
 public:
  explicit Kind(const Settings& settings) : settings_(settings) {}
  ExchangeTraits traits() const override { return {.in_lockstep = false, .plain_numbers = true, .pairs = true}; }
  std::unique_ptr<Exchange> make(ExchangeParts parts) const override {
    return std::make_unique<ElasticTree>(settings_, std::move(parts));
  }
  std::string traffic_text() const override {
    return "2 (n-1) 4F every tau steps and 2 (n-1) 4F every tau_down: weights along each edge, and forces back";
  }
  Traffic traffic(const Case& c) const override {
    const double edges = c.workers - 1;
    const Traffic both{4, 2.0 * Mail::header_bytes + 8.0 * static_cast<double>(c.floats)};
    // In one exchange of the way up; the other way has its own period.
    const double down =
        settings_.tau_down > 0 ? static_cast<double>(c.tau) / static_cast<double>(settings_.tau_down) : 1;
    Traffic sum = (edges * (1 + down)) * both;
    sum.at_most = true;  // who has not been answered yet leaves one out
    return sum;
  }

 private:
  Settings settings_;
};

}  // namespace

std::unique_ptr<const ExchangeKind> elastic_tree(OptionReader& options) {
  Settings s;
  s.fanout = static_cast<int>(options.integer("fanout", s.fanout, 1, 10'000));
  s.tau_down = options.integer("tau_down", 0, 0, 1'000'000'000);
  return std::make_unique<Kind>(s);
}

}  // namespace echelon::exchanges
