// RMSProp (Tieleman and Hinton 2012): the gradient over the root of its running mean square, optionally with momentum.
#include "kernels/update.h"
#include "optim/rules.h"

namespace echelon::rules {

namespace {

class Rmsprop : public Rule {
 public:
  explicit Rmsprop(OptionReader& r)
      : alpha_(share(r, "alpha", 0.99)),
        eps_(epsilon(r, 1e-8)),
        momentum_(share(r, "momentum", 0)),
        weight_decay_(rules::weight_decay(r)) {}
  std::vector<std::string> slots() const override {
    if (momentum_ == 0) return {"rmsprop_square"};
    return {"rmsprop_square", "momentum"};
  }
  void apply(const StepScale& step, const Piece& p) const override {
    kernels::rmsprop({.lr = step.lr,
                      .alpha = alpha_,
                      .eps = eps_,
                      .momentum = momentum_,
                      .weight_decay = p.decays ? weight_decay_ : 0,
                      .grad_scale = step.grad_scale},
                     p.weights, p.gradient, p.slots[0], momentum_ == 0 ? nullptr : p.slots[1], p.size);
  }

 private:
  double alpha_, eps_, momentum_, weight_decay_;
};

}  // namespace

std::unique_ptr<const Rule> rmsprop(OptionReader& r) { return std::make_unique<Rmsprop>(r); }

}  // namespace echelon::rules
