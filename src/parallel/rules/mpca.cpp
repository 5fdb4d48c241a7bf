// A penalty on the distance from the central model, in every step (MPCA-SGD, Langer et al.): updating and sharing are
// decoupled. A worker sends its weights when its last ones have been merged, and goes on; the mean of all workers is
// the centre. When a centre comes it is old, so a worker extrapolates it along its last movement, and its gradient gets
// penalty * (w - target) on top.

#include "parallel/rules/common.h"
#include "parallel/rules/rules.h"

namespace echelon::rules {

namespace {

struct MpcaSettings {
  double penalty = 0.1;
  bool extrapolate = true;
};

class MpcaWorker : public WorkerSide {
 public:
  MpcaWorker(const MpcaSettings& settings, const ReplicaView& view)
      : settings_(settings),
        view_(view),
        centre_(zeros(view.weights.size())),
        speed_(zeros(view.weights.size())),
        since_(zeros(view.weights.size())) {
    std::ranges::copy(view.weights, centre_.as<float>().begin());
  }

  void contribute(Range range, double share, std::span<float> out) override {
    kernels::scale(out.data(), view_.weights.data() + range.begin, static_cast<float>(share), out.size());
  }

  void apply(Range range, std::span<const float> answer) override {
    float* centre = centre_.as<float>().data() + range.begin;
    float* speed = speed_.as<float>().data() + range.begin;
    float* since = since_.as<float>().data() + range.begin;
    for (std::size_t i = 0; i < answer.size(); ++i) {
      if (settings_.extrapolate && since[i] > 0) speed[i] = (answer[i] - centre[i]) / since[i];
      centre[i] = answer[i];
      since[i] = 0;
    }
  }

  void on_gradient() override {
    const auto penalty = static_cast<float>(settings_.penalty);
    float* since = since_.as<float>().data();
    const float *centre = centre_.as<float>().data(), *speed = speed_.as<float>().data();
    for_each_weight(*view_.segments, {0, view_.weights.size()}, [&](std::size_t begin, std::size_t n) {
      for (std::size_t i = begin; i < begin + n; ++i) {
        const float target = centre[i] + speed[i] * since[i];
        view_.gradient[i] += penalty * (view_.weights[i] - target);
        since[i] += 1;
      }
    });
  }

  std::vector<StateSpan> state() override {
    return {as_state("centre", centre_), as_state("speed", speed_), as_state("since", since_)};
  }

 private:
  MpcaSettings settings_;
  ReplicaView view_;
  Buffer centre_, speed_;  // the last one that came; its movement in a step
  Buffer since_;           // steps since it came, for each number because ranges come one by one
};

class MpcaShared : public SharedSide {
 public:
  explicit MpcaShared(std::span<const float> start) : centre_(zeros(start.size())) {
    std::ranges::copy(start, centre_.as<float>().begin());
  }
  void conclude(std::span<float> mean, double) override { std::ranges::copy(mean, centre_.as<float>().begin()); }
  std::span<const float> answer() const override { return centre_.as<float>(); }
  std::vector<StateSpan> state() override { return {as_state("centre", centre_)}; }

 private:
  Buffer centre_;
};

class Mpca : public MergeRule {
 public:
  explicit Mpca(const MpcaSettings& settings) : settings_(settings) {}
  RuleTraits traits() const override {
    return {.quantity = RuleTraits::Quantity::weights,
            .model = RuleTraits::Model::mean,
            .sums = true,
            .changes = false,
            .answers_changes = false,
            .decoupled = true};
  }
  void accepts(const Composition& c, const CompositionFacts&, Problems& problems) const override {
    refuse(
        problems, !(c.sync_name == "soft" && c.exchange_name == "server"),
        "rule mpca is for workers that go on while their contributions travel: take exchange server with sync soft, or "
        "rule param_mean");
  }
  std::unique_ptr<WorkerSide> make_worker(const ReplicaView& view) const override {
    return std::make_unique<MpcaWorker>(settings_, view);
  }
  std::unique_ptr<SharedSide> make_shared(const Place& place) const override {
    return std::make_unique<MpcaShared>(place.start);
  }

 private:
  MpcaSettings settings_;
};

std::unique_ptr<const MergeRule> make_mpca(OptionReader& options) {
  MpcaSettings s;
  s.penalty = options.number("penalty", s.penalty, 0, 1e6);
  s.extrapolate = options.flag("extrapolate", s.extrapolate);
  return std::make_unique<Mpca>(s);
}

}  // namespace

RulePart mpca() {
  return {{"mpca",
           "a penalty on the distance to the (extrapolated) centre in the loss; updates and sharing decoupled",
           {{"penalty", "0.1", "of the distance, times the learning rate"},
            {"extrapolate", "true", "the stale centre along its last movement"}}},
          make_mpca};
}

}  // namespace echelon::rules
