// Several learners on every worker: replicas, each of which makes the next step in turn. Between two exchanges they do
// not know of each other, so a worker makes as many of these steps side by side as it has cores, each learner on cores
// of its own (learner_slots.h): small batches, whose shards are too few for all cores, fill the machine all the same.
// The bits are those of one step after the other. Learners are averaged on their worker before the workers exchange, so
// that the more of them there are, the more samples pass between two messages. How many there are, and how often they
// exchange, can be tuned by the measured throughput (parallel/exchanges/autotune.h). When the learning rate has fallen
// to half, averaging begins anew.

#include <algorithm>
#include <cstring>

#include "collective/algorithms.h"
#include "collective/shard_sum.h"
#include "kernels/vector.h"
#include "parallel/composition.h"
#include "parallel/exchanges/autotune.h"
#include "parallel/exchanges/exchanges.h"
#include "parallel/exchanges/learner_slots.h"

namespace echelon::exchanges {

namespace {

struct LearnersSettings {
  LearnerSetting start;
  std::int64_t most = 4;
  bool autotune = false;
  std::int64_t window = 8;  // meetings between two decisions
};

class Learners : public Exchange {
 public:
  Learners(const LearnersSettings& settings, ExchangeParts parts)
      : settings_(settings),
        parts_(std::move(parts)),
        tuner_({.most_learners = settings.most}, {settings.start.learners, parts_.when.tau}),
        shared_(parts_.rule->make_shared(parts_.place({0, parts_.floats()}))),
        sum_(parts_.floats() * sizeof(float)),
        one_(parts_.floats() * sizeof(float)) {
    for (const StateSpan& s : parts_.trainer->state()) optimizer_bytes_ += s.bytes.size();
    const std::int64_t places = settings.autotune ? settings.most : settings.start.learners;
    for (std::int64_t l = 0; l < places; ++l) {
      Learner& learner = learners_.emplace_back();
      learner.weights = Buffer(parts_.floats() * sizeof(float));
      learner.optimizer = Buffer(optimizer_bytes_);
      std::ranges::copy(parts_.trainer->parameters(), learner.weights.as<float>().begin());
    }
    make_sides();
    measured_from_ = parts_.world->now();
  }

  std::int64_t period(std::int64_t) const override { return setting().tau * setting().learners; }

  // The next learner's turn.
  void before_step(const StepInfo& info) override {
    if (sides_for_ != setting().learners) make_sides();  // a checkpoint may have had more
    if (setting().learners > 1) {
      put_away();
      active_ = (active_ + 1) % setting().learners;
      take_out();
    }
    samples_ += info.share * static_cast<double>(info.batch);
  }

  // A simulated worker has one core.
  std::int64_t steps_side_by_side() const override {
    if (!parts_.make_trainer || !parts_.world->place().threads) return 1;
    return std::min<std::int64_t>(setting().learners, parts_.team->cores().count());
  }

  StepResult make_steps(std::int64_t count, const std::function<StepInput(std::int64_t)>& next) override {
    if (sides_for_ != setting().learners) make_sides();
    if (slots_.count() != steps_side_by_side())
      slots_ = LearnerSlots(static_cast<int>(steps_side_by_side()), parts_.team->cores().count(), parts_.make_trainer);
    most_at_once_ = std::max(most_at_once_, count);
    put_away();
    StepInfo last;
    for (std::int64_t i = 0; i < count; ++i) {
      active_ = (active_ + 1) % setting().learners;
      const StepInput input = next(i);
      slots_.prepare(static_cast<int>(i), input, state_of_active());
      last = input.info;
      samples_ += last.share * static_cast<double>(last.batch);
    }
    const StepResult result = slots_.run(static_cast<int>(count), parts_.trainer->hooks());
    take_out();
    if (last.due) exchange(last);
    return result;
  }

  double exchange(const StepInfo& info) override {
    const std::int64_t count = setting().learners;
    const std::span<float> sum = sum_.as<float>(), one = one_.as<float>();
    put_away();
    for (std::int64_t l = 0; l < count; ++l) {
      side(l).contribute({0, sum.size()}, 1.0 / static_cast<double>(count * parts_.workers()), l == 0 ? sum : one);
      if (l > 0) kernels::add(sum.data(), sum.data(), one.data(), sum.size());
    }
    if (parts_.workers() > 1) all_reduce_members(parts_.team->group(), sum);
    shared_->conclude(sum, info.lr);
    ++meetings_;
    for (std::int64_t l = 0; l < count; ++l) side(l).apply({0, sum.size()}, shared_->answer());
    const bool fell = rate_ > 0 && info.lr <= 0.5 * rate_;
    if (fell) restart();
    if (fell || rate_ == 0) rate_ = info.lr;
    take_out();
    if (settings_.autotune && meetings_ % settings_.window == 0) tune();
    return 0;
  }

  void drain() override {}
  void read_model(std::span<float> out) override { std::ranges::copy(shared_->model(), out.begin()); }

  std::vector<Figure> figures() override {
    return {{"restarts", static_cast<double>(restarts_)},
            {"learners", static_cast<double>(setting().learners)},
            {"side_by_side", static_cast<double>(most_at_once_)}};
  }

  std::vector<StateSpan> state() override {
    std::vector<StateSpan> all;
    for (std::size_t l = 0; l < learners_.size(); ++l) {
      all.push_back(as_state(fmt::format("learner {}", l), learners_[l].weights));
      all.push_back(as_state(fmt::format("optimizer {}", l), learners_[l].optimizer));
      add_states(all, fmt::format("side {} ", l), learners_[l].side->state());
    }
    add_states(all, "shared ", shared_->state());
    all.push_back({"tuner", tuner_.state()});
    all.push_back(as_state("active", active_));
    all.push_back(as_state("meetings", meetings_));
    all.push_back(as_state("rate", rate_)), all.push_back(as_state("restarts", restarts_));
    return all;
  }

 private:
  struct Learner {
    Buffer weights, optimizer;  // of the active one: as of its last turn
    std::unique_ptr<WorkerSide> side;
  };

  LearnerSetting setting() const { return tuner_.setting(); }
  WorkerSide& side(std::int64_t l) { return *learners_[static_cast<std::size_t>(l)].side; }
  Learner& active() { return learners_[static_cast<std::size_t>(active_)]; }

  // Rules know how many workers there are: these are the learners. What the sides remember stays.
  void make_sides() {
    for (Learner& learner : learners_) {
      ReplicaView view = parts_.view();
      view.weights = learner.weights.as<float>();
      view.workers = parts_.workers() * static_cast<int>(setting().learners);
      auto side = parts_.rule->make_worker(view);
      if (learner.side) {
        const auto before = learner.side->state(), now = side->state();
        for (std::size_t i = 0; i < now.size(); ++i)
          std::memcpy(now[i].bytes.data(), before[i].bytes.data(), now[i].bytes.size());
      }
      learner.side = std::move(side);
    }
    sides_for_ = setting().learners;
  }

  // The rate has fallen: all learners go on from the central model, which forgets where it was heading (CROSSBOW).
  void restart() {
    shared_->restart();
    for (std::int64_t l = 0; l < setting().learners; ++l)
      std::ranges::copy(shared_->answer(), learners_[static_cast<std::size_t>(l)].weights.as<float>().begin());
    ++restarts_;
  }

  LearnerState state_of_active() { return {active().weights.as<float>(), active().optimizer.as<std::byte>()}; }
  void put_away() { state_of_active().take_from(*parts_.trainer); }
  void take_out() { state_of_active().give_to(*parts_.trainer); }

  // Rank 0 decides for all, by its clock. A new learner begins at the central model, with nothing in mind.
  void tune() {
    const LearnerSetting before = setting();
    const double now = parts_.world->now();
    if (parts_.rank() == 0) tuner_.measured(samples_, now - measured_from_);
    if (parts_.workers() > 1) parts_.team->broadcast(tuner_.state());
    samples_ = 0, measured_from_ = now;
    const LearnerSetting after = setting();
    for (std::int64_t l = before.learners; l < after.learners; ++l) {
      Learner& learner = learners_[static_cast<std::size_t>(l)];
      std::ranges::fill(learner.optimizer.as<std::byte>(), std::byte{});
      std::ranges::copy(shared_->answer(), learner.weights.as<float>().begin());
      learner.side->apply({0, parts_.floats()}, shared_->answer());
    }
    if (after.learners == before.learners) return;
    if (active_ >= after.learners) {  // its turn is over: what it has found out is in the central model
      active_ = 0;
      take_out();
    }
    make_sides();
  }

  LearnersSettings settings_;
  ExchangeParts parts_;
  Autotune tuner_;
  std::vector<Learner> learners_;
  std::unique_ptr<SharedSide> shared_;
  Buffer sum_, one_;
  std::size_t optimizer_bytes_ = 0;  // the trainer's state
  LearnerSlots slots_;
  std::int64_t most_at_once_ = 1;
  std::int64_t active_ = 0, sides_for_ = 0, meetings_ = 0;
  double samples_ = 0, measured_from_ = 0;
  double rate_ = 0;  // since the last restart, or the beginning
  std::int64_t restarts_ = 0;
};

class LearnersKind : public ExchangeKind {
 public:
  explicit LearnersKind(const LearnersSettings& settings) : settings_(settings) {}
  ExchangeTraits traits() const override {
    return {.in_lockstep = true,
            .sums = true,
            .plain_numbers = true,
            .works_alone = true,
            .by_clock = settings_.autotune};
  }
  void accepts(const Composition& c, const CompositionFacts& facts, Problems& problems) const override {
    ExchangeKind::accepts(c, facts, problems);
    const RuleTraits rule = c.rule->traits();
    refuse(
        problems,
        !(rule.sums && rule.quantity == RuleTraits::Quantity::weights && rule.model == RuleTraits::Model::shared),
        fmt::format("exchange learners draws many learners towards a common model, which rule {} does not have: take "
                    "rule sma or outer_momentum, or exchange all_reduce",
                    c.rule_name));
  }
  std::unique_ptr<Exchange> make(ExchangeParts parts) const override {
    return std::make_unique<Learners>(settings_, std::move(parts));
  }
  std::int64_t steps_between(std::int64_t tau) const override { return tau * settings_.start.learners; }
  std::string messages_text() const override { return "2 n (n-1) every tau L steps"; }
  std::string traffic_text() const override {
    return "2 (n-1) W every tau L steps, for L learners on each worker, while nothing is tuned";
  }
  Traffic traffic(const TrafficQuery& c) const override {
    Traffic sum;
    for (int i = 0; i < c.workers; ++i) {
      const MemberTraffic sent = shard_sum_traffic(i, c.workers, c.workers, c.floats);
      sum = sum + Traffic{static_cast<double>(sent.messages), static_cast<double>(sent.bytes)};
    }
    return sum;
  }

 private:
  LearnersSettings settings_;
};

std::unique_ptr<const ExchangeKind> make_learners(OptionReader& options) {
  LearnersSettings s;
  s.autotune = options.flag("autotune", false);
  constexpr std::int64_t most = 64;  // each has weights and an optimiser's state of its own
  s.start.learners = options.integer("learners", 1, 1, most);
  s.most = options.integer("most", std::max<std::int64_t>(4, s.start.learners), s.start.learners, most);
  s.window = options.integer("window", s.window, 1, 1'000'000);
  return std::make_unique<LearnersKind>(s);
}

}  // namespace

ExchangePart learners() {
  return {{"learners",
           "several replicas on every worker, which are averaged there first",
           {{"learners", "1", "on each worker, at the beginning"},
            {"autotune", "false", "add learners as long as throughput rises, then shorten tau"},
            {"most", "4", "learners"},
            {"window", "8", "exchanges between two decisions"}}},
          make_learners};
}

}  // namespace echelon::exchanges
