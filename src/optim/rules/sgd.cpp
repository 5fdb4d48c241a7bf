// Stochastic gradient descent: plain, with Polyak's momentum, and with Nesterov's (in torch's form).
#include "kernels/update.h"
#include "optim/rules.h"

namespace echelon::rules {

namespace {

struct MomentumSettings {
  double weight_decay = 0, momentum = 0;

  kernels::SgdSettings at(const StepScale& step, const Piece& piece) const {
    return {.lr = step.lr,
            .weight_decay = piece.decays ? weight_decay : 0,
            .momentum = momentum,
            .grad_scale = step.grad_scale};
  }
};

class Sgd : public Rule {
 public:
  explicit Sgd(MomentumSettings settings) : settings_(settings) {}
  std::vector<std::string> slots() const override { return {}; }
  void apply(const StepScale& step, const Piece& p) const override {
    kernels::sgd(settings_.at(step, p), p.weights, p.gradient, p.size);
  }

 private:
  MomentumSettings settings_;
};

class Momentum : public Rule {
 public:
  explicit Momentum(MomentumSettings settings) : settings_(settings) {}
  std::vector<std::string> slots() const override { return {"momentum"}; }
  void apply(const StepScale& step, const Piece& p) const override {
    kernels::momentum(settings_.at(step, p), p.weights, p.gradient, p.slots[0], p.size);
  }

 private:
  MomentumSettings settings_;
};

class Nesterov : public Rule {
 public:
  explicit Nesterov(MomentumSettings settings) : settings_(settings) {}
  std::vector<std::string> slots() const override { return {"momentum"}; }
  void apply(const StepScale& step, const Piece& p) const override {
    kernels::nesterov(settings_.at(step, p), p.weights, p.gradient, p.slots[0], p.size);
  }

 private:
  MomentumSettings settings_;
};

MomentumSettings with_momentum(OptionReader& r) {
  return {.weight_decay = weight_decay(r), .momentum = share(r, "momentum", 0.9)};
}

}  // namespace

std::unique_ptr<const Rule> sgd(OptionReader& r) {
  // Elsewhere momentum is a setting of SGD; say where it is here.
  for (const char* key : {"momentum", "nesterov"})
    if (r.has(key)) {
      r.problem(key, "is not a setting of sgd; write name = \"" + std::string(key) + "\" instead");
      r.ignore(key);
    }
  return std::make_unique<Sgd>(MomentumSettings{.weight_decay = weight_decay(r)});
}
std::unique_ptr<const Rule> momentum(OptionReader& r) { return std::make_unique<Momentum>(with_momentum(r)); }
std::unique_ptr<const Rule> nesterov(OptionReader& r) { return std::make_unique<Nesterov>(with_momentum(r)); }

}  // namespace echelon::rules
