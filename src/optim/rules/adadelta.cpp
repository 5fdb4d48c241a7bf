// AdaDelta (Zeiler 2012): steps in the units of the weights, from running averages of squared gradients and steps.
#include "kernels/update.h"
#include "optim/rules.h"

namespace echelon::rules {

namespace {

class Adadelta : public Rule {
 public:
  explicit Adadelta(OptionReader& r)
      : rho_(share(r, "rho", 0.9)), eps_(epsilon(r, 1e-6)), weight_decay_(rules::weight_decay(r)) {}
  std::vector<std::string> slots() const override { return {"adadelta_square", "adadelta_delta"}; }
  void apply(const StepScale& step, const Piece& p) const override {
    kernels::adadelta({.lr = step.lr,
                       .rho = rho_,
                       .eps = eps_,
                       .weight_decay = p.decays ? weight_decay_ : 0,
                       .grad_scale = step.grad_scale},
                      p.weights, p.gradient, p.slots[0], p.slots[1], p.size);
  }

 private:
  double rho_, eps_, weight_decay_;
};

}  // namespace

std::unique_ptr<const Rule> adadelta(OptionReader& r) { return std::make_unique<Adadelta>(r); }

}  // namespace echelon::rules
