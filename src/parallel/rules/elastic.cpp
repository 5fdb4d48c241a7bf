// Elastic averaging (EASGD): between a worker and the centre z acts a force d = alpha (w - z) that moves both, w -= d
// and z += d. The server computes it when the worker's weights arrive, so both ends get the same d.

#include "parallel/rules/common.h"
#include "parallel/rules/rules.h"

namespace echelon::rules {

namespace {

class ElasticWorker : public WorkerSide {
 public:
  explicit ElasticWorker(const ReplicaView& view) : view_(view) {}
  void contribute(Range range, double share, std::span<float> out) override {
    kernels::scale(out.data(), view_.weights.data() + range.begin, static_cast<float>(share), out.size());
  }
  void apply(Range range, std::span<const float> answer) override {
    float* w = view_.weights.data() + range.begin;
    for (std::size_t i = 0; i < answer.size(); ++i) w[i] -= answer[i];
  }

 private:
  ReplicaView view_;
};

class ElasticShared : public SharedSide {
 public:
  ElasticShared(float alpha, std::span<const float> start)
      : alpha_(alpha), centre_(zeros(start.size())), force_(zeros(start.size())) {
    std::ranges::copy(start, centre_.as<float>().begin());
  }
  void conclude(std::span<float>, double) override {
    invariant(false, "an elastic force belongs to one worker at a time");
  }
  void absorb(std::span<const float> in, const PushInfo&) override {
    const std::span<float> z = centre_.as<float>(), d = force_.as<float>();
    for (std::size_t i = 0; i < z.size(); ++i) {
      d[i] = alpha_ * (in[i] - z[i]);
      z[i] += d[i];
    }
  }
  std::span<const float> answer() const override { return force_.as<float>(); }
  std::span<const float> model() const override { return centre_.as<float>(); }
  std::span<float> movable() override { return centre_.as<float>(); }
  std::vector<StateSpan> state() override { return {as_state("centre", centre_)}; }

 private:
  float alpha_;
  Buffer centre_, force_;
};

class Elastic : public OneByOne {
 public:
  explicit Elastic(double alpha) : alpha_(alpha) {}
  RuleTraits traits() const override {
    return {.quantity = RuleTraits::Quantity::weights,
            .model = RuleTraits::Model::shared,
            .one_by_one = true,
            .changes = false,
            .answers_changes = true,
            .movable = true};
  }
  std::unique_ptr<WorkerSide> make_worker(const ReplicaView& view) const override {
    return std::make_unique<ElasticWorker>(view);
  }
  std::unique_ptr<SharedSide> make_shared(const Place& place) const override {
    return std::make_unique<ElasticShared>(static_cast<float>(alpha_ > 0 ? alpha_ : 0.9 / place.workers), place.start);
  }

 protected:
  std::string instead_of_sums() const override { return ", or rule sma, which is its synchronous form"; }
  std::string instead_of_sums_on_the_way() const override { return ", or take exchange elastic_tree"; }

 private:
  double alpha_;
};

// alpha: the paper's 0.9 / workers unless given.
std::unique_ptr<const MergeRule> make_elastic(OptionReader& options) {
  return std::make_unique<Elastic>(options.number("alpha", 0, 0, 1));
}

}  // namespace

RulePart elastic() {
  return {{"elastic",
           "worker and centre move towards each other by the same force",
           {{"alpha", "0.9 / workers", "the share of the difference that moves"}}},
          make_elastic};
}

}  // namespace echelon::rules
