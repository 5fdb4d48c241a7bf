// Gradients go to where the model lives; the optimizer runs there, and workers get weights back. Merged one by one this
// is asynchronous SGD (Downpour), and cures for its staleness are settings:
//
//   scale = "staleness"   the rate is divided by how many updates the gradient is late, itself included (Rudra)
//   softsync = n          an update is of floor(workers / n) gradients, with their mean and their mean staleness
//                         (n-softsync, Rudra); 0: of each one
//   scale = "speed"       it is multiplied by the worker's speed relative to the others' (Jiang et al.)
//   dc_lambda > 0         g + lambda g^2 (w - w_old), which approximates the gradient at today's weights (DC-ASGD)
//   momentum_correction   the momentum that asynchrony brings along, (n - 1) / n, is taken off that of [rule.optim];
//   what
//                         is left may be negative (Mitliagkas et al.)
//
// [rule.optim] is the update rule at the owner; the recipe's [optim] if it is not given. The rate is the recipe's in
// any case.

#include <optional>

#include "parallel/rules/common.h"
#include "parallel/rules/rules.h"

namespace echelon::rules {

namespace {

struct GradPushSettings {
  enum class Scale { none, staleness, speed } scale = Scale::none;
  double dc_lambda = 0;
  std::int64_t softsync = 0;
  double momentum_correction = 0;
  double momentum = 0;           // with a correction: that of `optim`, which then has none itself
  std::optional<Options> optim;  // not given: the recipe's
};

Optim optim_from(Options table, Problems& problems) {
  OptionReader reader(table, problems);
  Optim optim = read_optim(reader);
  reader.done();
  return optim;
}

class GradPushWorker : public GradientSide {
 public:
  using GradientSide::GradientSide;
  void apply(Range range, std::span<const float> answer) override {
    for_each_weight(*view_.segments, range, [&](std::size_t begin, std::size_t n) {
      kernels::copy(view_.weights.data() + begin, answer.data() + (begin - range.begin), n);
    });
  }
};

class GradPushShared : public SharedSide {
 public:
  GradPushShared(const GradPushSettings& settings, const MergeRule::Place& place)
      : settings_(settings),
        workers_(place.workers),
        weights_(zeros(place.start.size())),
        gradient_(zeros(place.start.size())),
        before_(zeros(settings.momentum_correction > 0 ? place.start.size() : 0)),
        sum_(zeros(settings.softsync > 0 ? place.start.size() : 0)) {
    std::ranges::copy(place.start, weights().begin());
    std::ranges::copy(place.start.first(before_.as<float>().size()), before_.as<float>().begin());
    if (settings_.dc_lambda > 0)
      for (int w = 0; w < workers_; ++w) {
        read_.push_back(zeros(place.start.size()));
        std::ranges::copy(place.start, read_.back().as<float>().begin());
      }
    Problems checked_before;
    Optim optim = settings_.optim ? optim_from(*settings_.optim, checked_before) : place.make_optim();
    update_ =
        std::make_unique<Update>(std::move(optim.rule), optim.clip, place.segments, weights(), gradient_.as<float>());
  }

  void conclude(std::span<float> mean, double lr) override {
    std::ranges::copy(mean, gradient_.as<float>().begin());
    step(lr);
  }

  void absorb(std::span<const float> in, const PushInfo& a) override {
    const std::span<float> g = gradient_.as<float>();
    if (settings_.softsync > 0) return collect(in, a);
    std::ranges::copy(in, g.begin());
    if (settings_.dc_lambda > 0) {
      const std::span<const float> w = weights(), old = read_[static_cast<std::size_t>(a.from)].as<float>();
      const auto lambda = static_cast<float>(settings_.dc_lambda);
      for (std::size_t i = 0; i < g.size(); ++i) g[i] += lambda * g[i] * g[i] * (w[i] - old[i]);
    }
    double lr = a.lr;  // has the worker's share in it, about 1 / n, which is what staleness does usually
    if (settings_.scale == GradPushSettings::Scale::staleness) lr *= workers_ / (1 + a.staleness);
    if (settings_.scale == GradPushSettings::Scale::speed) lr *= a.speed;
    step(lr);
  }

  bool waits_for_more() const override { return kept_.contributions > 0; }

  void was_read(Rank reader) override {
    if (settings_.dc_lambda > 0)
      std::ranges::copy(weights(), read_[static_cast<std::size_t>(reader)].as<float>().begin());
  }

  std::span<const float> answer() const override { return weights_.as<float>(); }
  std::span<float> movable() override { return weights_.as<float>(); }

  std::vector<StateSpan> state() override {
    std::vector<StateSpan> all{as_state("weights", weights())};
    for (const Update::Slot& slot : update_->slots()) all.push_back(as_state(slot.name, slot.values));
    for (std::size_t w = 0; w < read_.size(); ++w) all.push_back(as_state(fmt::format("read by {}", w), read_[w]));
    if (settings_.momentum_correction > 0) all.push_back(as_state("before", before_));
    if (settings_.softsync > 0) all.push_back(as_state("kept gradients", sum_)), all.push_back(as_state("kept", kept_));
    all.push_back(as_state("steps", steps_));
    return all;
  }

 private:
  std::span<float> weights() { return weights_.as<float>(); }

  // n-softsync: the gradients of an update are added up, each with its own rate and staleness.
  void collect(std::span<const float> in, const PushInfo& a) {
    const std::span<float> g = gradient_.as<float>(), sum = sum_.as<float>();
    const auto count = static_cast<double>(a.contributions);
    kernels::axpy(sum.data(), static_cast<float>(a.lr), in.data(), sum.size());  // as a relay weighs them
    kept_.contributions += a.contributions, kept_.rates += a.lr, kept_.staleness += count * a.staleness;
    if (kept_.contributions < std::max<std::int64_t>(1, workers_ / settings_.softsync)) return;
    const auto all = static_cast<double>(kept_.contributions);
    kernels::scale(g.data(), sum.data(), static_cast<float>(kept_.rates > 0 ? 1 / kept_.rates : 0), g.size());
    double lr = kept_.rates * workers_ / all;  // the mean of what has the shares in it, about 1 / n
    if (settings_.scale == GradPushSettings::Scale::staleness) lr /= 1 + kept_.staleness / all;
    std::ranges::fill(sum, 0.0f);
    kept_ = {};
    step(lr);
  }

  void step(double lr) {
    if (settings_.momentum_correction > 0) {  // w += m (w - w_before), where m may be negative
      const double implicit = 1 - 1.0 / workers_;
      const auto m = static_cast<float>(settings_.momentum - settings_.momentum_correction * implicit);
      const std::span<float> w = weights(), before = before_.as<float>();
      for (std::size_t i = 0; i < w.size(); ++i) {
        const float moved = w[i] - before[i];
        before[i] = w[i];
        w[i] += m * moved;
      }
    }
    update_->run_alone({.number = ++steps_, .lr = lr, .grad_scale = 1});
  }

  GradPushSettings settings_;
  int workers_;
  Buffer weights_, gradient_, before_;
  struct Kept {  // of the contributions that wait for others
    std::int64_t contributions = 0;
    double rates = 0, staleness = 0;  // sums
  } kept_;
  Buffer sum_;                // their gradients
  std::vector<Buffer> read_;  // the weights that each worker was given last
  std::unique_ptr<Update> update_;
  std::int64_t steps_ = 0;
};

class GradPush : public MergeRule {
 public:
  explicit GradPush(GradPushSettings settings) : settings_(std::move(settings)) {}
  RuleTraits traits() const override {
    return {.model = RuleTraits::Model::shared,
            .local_step = false,
            .sums = true,
            .one_by_one = true,
            .answers_changes = false,
            .gradient_itself = true,
            .movable = true,
            .by_clock = settings_.scale == GradPushSettings::Scale::speed};
  }
  // The optimizer runs at the owners, each of which has a part of the model.
  void accepts(const Composition& c, const CompositionFacts& facts, Problems& problems) const override {
    refuse(problems, settings_.softsync > 0 && (c.sync->traits().in_rounds || c.exchange->traits().sums),
           "rule.softsync says how many gradients an update has where they come one by one: take exchange server with "
           "sync async, or leave it out");
    refuse(problems, settings_.softsync > 0 && (c.when.merges_steps() || c.exchange->traits().sites),
           "with rule.softsync not every push is an update, and when.n_push, n_fetch, warm_start and exchange.sites "
           "count those: leave one of them out");
    refuse(
        problems, facts.workers > 1 && settings_.softsync > facts.workers,
        fmt::format("rule.softsync={} asks for updates of less than one gradient of {} workers: set it to at most {}",
                    settings_.softsync, facts.workers, facts.workers));
    refuse(problems, settings_.softsync > 0 && settings_.dc_lambda > 0,
           "rule.dc_lambda corrects a gradient by its own delay, and with softsync an update has several: leave one of "
           "them out");
    refuse(
        problems, facts.needs_norms,
        "lars and lamb need the norms of whole parameters, but servers hold parts of them: take optim.name momentum or "
        "adam, or rule grad_mean");
    refuse(problems, facts.clips_by_norm,
           "optim.clip_norm is of the whole gradient, but servers hold parts of it: take optim.clip_value, or rule "
           "grad_mean");
  }
  std::unique_ptr<WorkerSide> make_worker(const ReplicaView& view) const override {
    return std::make_unique<GradPushWorker>(view);
  }
  std::unique_ptr<SharedSide> make_shared(const Place& place) const override {
    return std::make_unique<GradPushShared>(settings_, place);
  }
  std::function<Optim()> own_optim() const override {
    if (!settings_.optim) return {};
    return [table = *settings_.optim] {
      Problems checked_before;
      return optim_from(table, checked_before);
    };
  }

 private:
  GradPushSettings settings_;
};

// The owner's own update rule. Servers hold parts of the model, so nothing there may need the whole of it.
void read_owners_optim(OptionReader& options, GradPushSettings& s) {
  OptionReader table = options.table("optim");
  if (table.has("lr"))
    table.problem("lr", "has no meaning: the rate is the recipe's optim.lr with its schedule; leave it out");
  const Optim optim = read_optim(table);
  table.done();
  if (optim.rule->norm() != Rule::Norm::none || optim.rule->preconditions() || optim.clip.norm > 0)
    options.problem("optim",
                    "needs norms of whole parameters or of the whole gradient, but servers hold parts of them: "
                    "take momentum or adam, and clip_value instead of clip_norm");
  s.optim = table.options();
  if (s.momentum_correction == 0) return;
  const std::string name = table.text("name", "");
  if (name != "momentum" && name != "sgd") {
    options.problem("momentum_correction", "takes from the momentum of [rule.optim]: set its name to momentum or sgd");
    return;
  }
  s.momentum = name == "momentum" ? table.number("momentum", 0.9) : 0;
  s.optim->items["name"].value = "sgd";
  s.optim->items.erase("momentum");
}

std::unique_ptr<const MergeRule> make_grad_push(OptionReader& options) {
  GradPushSettings s;
  const std::string scale = options.choice("scale", "none", {"none", "staleness", "speed"});
  s.scale = scale == "staleness" ? GradPushSettings::Scale::staleness
            : scale == "speed"   ? GradPushSettings::Scale::speed
                                 : GradPushSettings::Scale::none;
  s.softsync = options.integer("softsync", 0, 0, 1'000'000);
  s.dc_lambda = options.number("dc_lambda", 0, 0, 1e6);
  s.momentum_correction = options.number("momentum_correction", 0, 0, 1);
  if (options.has("optim"))
    read_owners_optim(options, s);
  else if (s.momentum_correction > 0)
    options.problem("momentum_correction",
                    "takes from the momentum of [rule.optim]: set that too, to name = \"momentum\"");
  return std::make_unique<GradPush>(std::move(s));
}

}  // namespace

RulePart grad_push() {
  return {
      {"grad_push",
       "gradients go to the owner of the parameters, where an update rule applies them",
       {{"scale", "\"none\"", "weight of a gradient: none, staleness (divided by it) or speed (of its worker)"},
        {"softsync", "0", "n: the owner updates after floor(workers / n) gradients, with their mean; 0: after each"},
        {"dc_lambda", "0", "delay compensation: g + lambda g^2 (w_now - w_then)"},
        {"momentum_correction", "0", "share of the asynchrony's momentum 1 - 1/n taken off that of optim"},
        {"optim", "the recipe's [optim]", "a table: the update rule at the owner (without a rate)"}}},
      make_grad_push};
}

}  // namespace echelon::rules
