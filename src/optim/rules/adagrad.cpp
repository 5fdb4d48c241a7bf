// AdaGrad (Duchi et al. 2011): each weight's rate falls with the squares of all its gradients so far.
#include "kernels/update.h"
#include "optim/rules.h"

namespace echelon::rules {

namespace {

class Adagrad : public Rule {
 public:
  explicit Adagrad(OptionReader& r) : eps_(epsilon(r, 1e-10)), weight_decay_(rules::weight_decay(r)) {}
  std::vector<std::string> slots() const override { return {"adagrad_sum"}; }
  void apply(const StepScale& step, const Piece& p) const override {
    kernels::adagrad(
        {.lr = step.lr, .eps = eps_, .weight_decay = p.decays ? weight_decay_ : 0, .grad_scale = step.grad_scale},
        p.weights, p.gradient, p.slots[0], p.size);
  }

 private:
  double eps_, weight_decay_;
};

}  // namespace

std::unique_ptr<const Rule> adagrad(OptionReader& r) { return std::make_unique<Adagrad>(r); }

}  // namespace echelon::rules
