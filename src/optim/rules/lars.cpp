// LARS (You et al. 2017): momentum whose step in each parameter is scaled to that parameter's own norm, for large
// batches: trust = eta * |w| / (|g| + weight_decay * |w|).
#include "kernels/update.h"
#include "optim/rules.h"

namespace echelon::rules {

namespace {

class Lars : public Rule {
 public:
  explicit Lars(OptionReader& r)
      : eta_(r.number("eta", 0.001, 1e-9, 1)),
        momentum_(share(r, "momentum", 0.9)),
        weight_decay_(rules::weight_decay(r)) {}
  std::vector<std::string> slots() const override { return {"momentum"}; }
  Norm norm() const override { return Norm::gradient; }
  double trust(double weights_norm, double gradient_norm) const override {
    if (!(weights_norm > 0 && gradient_norm > 0)) return 1;
    return eta_ * weights_norm / (gradient_norm + weight_decay_ * weights_norm);
  }
  void apply(const StepScale& step, const Piece& p) const override {
    kernels::lars({.lr = step.lr,
                   .weight_decay = p.decays ? weight_decay_ : 0,
                   .momentum = momentum_,
                   .grad_scale = step.grad_scale},
                  p.trust, p.weights, p.gradient, p.slots[0], p.size);
  }

 private:
  double eta_, momentum_, weight_decay_;
};

}  // namespace

std::unique_ptr<const Rule> lars(OptionReader& r) { return std::make_unique<Lars>(r); }

}  // namespace echelon::rules
