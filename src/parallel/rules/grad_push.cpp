// Gradients go to where the model lives; the optimizer runs there, and workers get weights back. Merged one by one this
// is asynchronous SGD (Downpour), and three cures for its staleness are settings:
//
//   scale = "staleness"   the rate is divided by the gradient's staleness (Rudra)
//   scale = "speed"       by how much slower its worker is than the others (Jiang et al.)
//   dc_lambda > 0         g + lambda g^2 (w - w_old), which approximates the gradient at today's weights (DC-ASGD)
//   momentum_correction   the momentum that asynchrony brings along, (n - 1) / n, is taken off (Mitliagkas et al.)

#include "parallel/rules/common.h"
#include "parallel/rules/rules.h"

namespace echelon::rules {

namespace {

struct Settings {
  enum class Scale { none, staleness, speed } scale = Scale::none;
  double dc_lambda = 0;
  double momentum_correction = 0;
};

class Worker : public GradientSide {
 public:
  using GradientSide::GradientSide;
  void apply(Range range, std::span<const float> answer) override {
    for_each_weight(*view_.segments, range, [&](std::size_t begin, std::size_t n) {
      kernels::copy(view_.weights.data() + begin, answer.data() + (begin - range.begin), n);
    });
  }
};

class Shared : public SharedSide {
 public:
  Shared(const Settings& settings, const MergeRule::Place& place)
      : settings_(settings),
        workers_(place.workers),
        weights_(zeros(place.start.size())),
        gradient_(zeros(place.start.size())),
        before_(zeros(settings.momentum_correction > 0 ? place.start.size() : 0)) {
    std::ranges::copy(place.start, weights().begin());
    std::ranges::copy(place.start.first(before_.as<float>().size()), before_.as<float>().begin());
    if (settings_.dc_lambda > 0)
      for (int w = 0; w < workers_; ++w) {
        seen_.push_back(zeros(place.start.size()));
        std::ranges::copy(place.start, seen_.back().as<float>().begin());
      }
    Optim optim = place.make_optim();
    update_ =
        std::make_unique<Update>(std::move(optim.rule), optim.clip, place.segments, weights(), gradient_.as<float>());
  }

  void conclude(std::span<float> mean, const Round& round) override {
    std::ranges::copy(mean, gradient_.as<float>().begin());
    step(round.lr);
  }

  void absorb(std::span<const float> in, const Arrival& a) override {
    const std::span<float> g = gradient_.as<float>();
    std::ranges::copy(in, g.begin());
    if (settings_.dc_lambda > 0) {
      const std::span<float> old = seen_[static_cast<std::size_t>(a.from)].as<float>();
      const auto lambda = static_cast<float>(settings_.dc_lambda);
      for (std::size_t i = 0; i < g.size(); ++i) g[i] += lambda * g[i] * g[i] * (weights()[i] - old[i]);
    }
    double lr = a.lr;
    if (settings_.scale == Settings::Scale::staleness) lr /= std::max<double>(1, static_cast<double>(a.staleness));
    if (settings_.scale == Settings::Scale::speed) lr *= std::min(1.0, a.speed);
    step(lr);
    if (settings_.dc_lambda > 0)
      std::ranges::copy(weights(), seen_[static_cast<std::size_t>(a.from)].as<float>().begin());
  }

  std::span<const float> answer() const override { return weights_.as<float>(); }

  std::vector<StateSpan> state() override {
    std::vector<StateSpan> all{as_state("weights", weights())};
    for (const Update::Slot& slot : update_->slots()) all.push_back(as_state(slot.name, slot.values));
    for (std::size_t w = 0; w < seen_.size(); ++w)
      all.push_back(as_state(fmt::format("seen by {}", w), seen_[w].as<float>()));
    if (settings_.momentum_correction > 0) all.push_back(as_state("before", before_.as<float>()));
    all.push_back({"steps", std::as_writable_bytes(std::span(&steps_, 1))});
    return all;
  }

 private:
  std::span<float> weights() { return weights_.as<float>(); }

  void step(double lr) {
    if (settings_.momentum_correction > 0) {  // w -= m (w - w_before): momentum, with the other sign
      const auto m = static_cast<float>(settings_.momentum_correction * (workers_ - 1) / workers_);
      const std::span<float> w = weights(), before = before_.as<float>();
      for (std::size_t i = 0; i < w.size(); ++i) {
        const float moved = w[i] - before[i];
        before[i] = w[i];
        w[i] -= m * moved;
      }
    }
    update_->run_alone({.number = ++steps_, .lr = lr, .grad_scale = 1});
  }

  Settings settings_;
  int workers_;
  Buffer weights_, gradient_, before_;
  std::vector<Buffer> seen_;  // the weights that each worker was given last
  std::unique_ptr<Update> update_;
  std::int64_t steps_ = 0;
};

class GradPush : public MergeRule {
 public:
  explicit GradPush(const Settings& settings) : settings_(settings) {}
  RuleTraits traits() const override {
    return {.model = RuleTraits::Model::shared,
            .local_step = false,
            .sums = true,
            .one_by_one = true,
            .answers_changes = false,
            .gradient_itself = true};
  }
  std::unique_ptr<WorkerSide> make_worker(const ReplicaView& view) const override {
    return std::make_unique<Worker>(view);
  }
  std::unique_ptr<SharedSide> make_shared(const Place& place) const override {
    return std::make_unique<Shared>(settings_, place);
  }

 private:
  Settings settings_;
};

}  // namespace

std::unique_ptr<const MergeRule> grad_push(OptionReader& options) {
  Settings s;
  const std::string scale = options.choice("scale", "none", {"none", "staleness", "speed"});
  s.scale = scale == "staleness" ? Settings::Scale::staleness
            : scale == "speed"   ? Settings::Scale::speed
                                 : Settings::Scale::none;
  s.dc_lambda = options.number("dc_lambda", 0, 0, 1e6);
  s.momentum_correction = options.number("momentum_correction", 0, 0, 1);
  return std::make_unique<GradPush>(s);
}

}  // namespace echelon::rules
