#pragma once
// An update rule: the mathematics of one optimizer on a run of numbers, as torch.optim defines it. A rule knows nothing
// of cores, clipping or checkpoints (optim/update.h does); it has settings but no state of its own: its state are flat
// buffers ("slots", one number for each weight), which somebody else owns and hands in. So a rule is immutable and
// thread-safe, and a new one is a short file in optim/rules/ and a line in the table of optim/rules.cpp.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/options.h"

namespace echelon {

// What is the same for every weight in one step.
struct StepScale {
  std::int64_t number = 1;  // of the step, counted from 1
  double lr = 0;
  double grad_scale = 1;  // the gradient is this times what the buffer holds
};

// A run of neighbouring weights of one parameter, with their gradient and state.
struct Piece {
  float* weights;
  float* gradient;  // may be overwritten
  std::span<float* const> slots;
  std::size_t size;
  bool decays;             // whether weight decay applies
  double trust = 1;        // of the whole parameter; see Rule::trust
  std::size_t offset = 0;  // of its first weight among all
};

class Rule {
 public:
  // Rules that scale a whole parameter by its norm need that norm before they apply.
  enum class Norm {
    none,
    gradient,   // of the gradient as it comes (LARS)
    direction,  // of what `direct` makes of it (LAMB)
  };

  virtual ~Rule() = default;
  virtual std::vector<std::string> slots() const = 0;  // the state's names, as in a checkpoint; each starts as zeros
  virtual Norm norm() const { return Norm::none; }
  // The factor of a whole parameter, from the norms of its weights and of the above. Not asked for parameters that do
  // not decay (biases, normalisation): theirs is 1, as in the LARS and LAMB papers' own code.
  virtual double trust(double /*weights_norm*/, double /*other_norm*/) const { return 1; }
  // Norm::direction only: moves the state and replaces the gradient by the direction. `apply` then finds it there.
  virtual void direct(const StepScale&, const Piece&) const {}
  // Rules that change a matrix's gradient as a whole, before norms are taken of it: all of a parameter with its state.
  virtual bool preconditions() const { return false; }
  struct Matrix {
    std::size_t rows, columns;
    float* gradient;
    std::span<float* const> slots;
  };
  virtual void precondition(const StepScale&, const Matrix&) const {}
  virtual void apply(const StepScale&, const Piece&) const = 0;
};

// The rule of that name (BadInput if there is none) with the settings that it finds in `options`; problems are added to
// the reader's. The keys "name", "lr", "clip_norm" and "clip_value" are read by optim/optim.h.
std::unique_ptr<const Rule> make_rule(const std::string& name, OptionReader& options);

std::vector<std::string> rule_names();
double default_lr(const std::string& rule_name);  // a rate that is usual for the rule

}  // namespace echelon
