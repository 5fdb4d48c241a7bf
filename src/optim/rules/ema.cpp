// Any rule, with an exponential moving average of the weights beside them (Polyak and Juditsky 1992): a slot like the
// rule's own state, so it is saved, shared out and resumed as that is.
#include "kernels/vector.h"
#include "optim/rules.h"

namespace echelon::rules {

namespace {

class Averaged : public Rule {
 public:
  Averaged(std::unique_ptr<const Rule> rule, double decay) : rule_(std::move(rule)), decay_(decay) {}
  std::vector<std::string> slots() const override {
    std::vector<std::string> names = rule_->slots();
    names.emplace_back(ema_slot);
    return names;
  }
  Norm norm() const override { return rule_->norm(); }
  bool preconditions() const override { return rule_->preconditions(); }
  void precondition(const StepScale& step, const Matrix& m) const override {
    rule_->precondition(step, {m.rows, m.columns, m.gradient, m.slots.first(m.slots.size() - 1)});
  }
  double trust(double weights, double other) const override { return rule_->trust(weights, other); }
  void direct(const StepScale& step, const Piece& p) const override { rule_->direct(step, inner(p)); }
  void apply(const StepScale& step, const Piece& p) const override {
    rule_->apply(step, inner(p));
    float* const average = p.slots.back();
    if (step.number <= 1)  // it begins with the first weights that there are
      kernels::copy(average, p.weights, p.size);
    else
      kernels::lerp(average, average, p.weights, static_cast<float>(1 - decay_), p.size);
  }

 private:
  static Piece inner(Piece p) {
    p.slots = p.slots.first(p.slots.size() - 1);
    return p;
  }
  std::unique_ptr<const Rule> rule_;
  double decay_;
};

}  // namespace

std::unique_ptr<const Rule> averaged(std::unique_ptr<const Rule> rule, double decay) {
  return std::make_unique<Averaged>(std::move(rule), decay);
}

}  // namespace echelon::rules
