// Adam (Kingma and Ba 2014), with weight decay as part of the gradient; AdamW (Loshchilov and Hutter 2017), with weight
// decay on the weights themselves; LAMB (You et al. 2019), Adam's direction scaled to each parameter's own norm.
#include "kernels/update.h"
#include "optim/rules.h"

namespace echelon::rules {

namespace {

struct AdamSettings {
  AdamSettings(OptionReader& r, double eps, double weight_decay)
      : beta1(share(r, "beta1", 0.9)),
        beta2(share(r, "beta2", 0.999)),
        eps(epsilon(r, eps)),
        weight_decay(rules::weight_decay(r, weight_decay)) {}
  double beta1, beta2, eps, weight_decay;

  kernels::AdamSettings at(const StepScale& step, const Piece& piece) const {
    return {.lr = step.lr,
            .beta1 = beta1,
            .beta2 = beta2,
            .eps = eps,
            .weight_decay = piece.decays ? weight_decay : 0,
            .grad_scale = step.grad_scale,
            .step = step.number};
  }
};

class Adam : public Rule {
 public:
  explicit Adam(OptionReader& r) : settings_(r, 1e-8, 0) {}
  std::vector<std::string> slots() const override { return {"adam_m", "adam_v"}; }
  void apply(const StepScale& step, const Piece& p) const override {
    kernels::adam(settings_.at(step, p), p.weights, p.gradient, p.slots[0], p.slots[1], p.size);
  }

 private:
  AdamSettings settings_;
};

class AdamW : public Rule {
 public:
  explicit AdamW(OptionReader& r) : settings_(r, 1e-8, 0.01) {}
  std::vector<std::string> slots() const override { return {"adam_m", "adam_v"}; }
  void apply(const StepScale& step, const Piece& p) const override {
    kernels::adamw(settings_.at(step, p), p.weights, p.gradient, p.slots[0], p.slots[1], p.size);
  }

 private:
  AdamSettings settings_;
};

class Lamb : public Rule {
 public:
  explicit Lamb(OptionReader& r) : settings_(r, 1e-6, 0.01) {}
  std::vector<std::string> slots() const override { return {"adam_m", "adam_v"}; }
  Norm norm() const override { return Norm::direction; }
  double trust(double weights_norm, double direction_norm) const override {
    return weights_norm > 0 && direction_norm > 0 ? weights_norm / direction_norm : 1;
  }
  void direct(const StepScale& step, const Piece& p) const override {
    kernels::lamb_direction(settings_.at(step, p), p.weights, p.gradient, p.slots[0], p.slots[1], p.gradient, p.size);
  }
  void apply(const StepScale& step, const Piece& p) const override {
    kernels::lamb_apply(step.lr * p.trust, p.weights, p.gradient, p.size);
  }

 private:
  AdamSettings settings_;
};

}  // namespace

std::unique_ptr<const Rule> adam(OptionReader& r) { return std::make_unique<Adam>(r); }
std::unique_ptr<const Rule> adamw(OptionReader& r) { return std::make_unique<AdamW>(r); }
std::unique_ptr<const Rule> lamb(OptionReader& r) { return std::make_unique<Lamb>(r); }

}  // namespace echelon::rules
