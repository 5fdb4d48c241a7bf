// Any rule, with weights that are stored in few bits: after every step they are rounded to the format, so that between
// steps there is nothing else of them. In blocks of at most Update::block_size numbers, which do not depend on who runs
// the step.
//
//   fixed       whole numbers of `bits` bits, `fraction` of them behind the point, rounded by chance: a step that is
//               smaller than the format's happens with its probability (Gupta et al. 2015)
//   flexpoint   whole numbers of `bits` bits and an exponent for each block, which is predicted from the block before
//               the step, twice as large as needed (Koester et al. 2017)

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "kernels/quantise.h"
#include "kernels/reduce.h"
#include "optim/rules.h"
#include "optim/update.h"

namespace echelon::rules {

namespace {

class Stored : public Rule {
 public:
  Stored(std::unique_ptr<const Rule> rule, const StoredFormat& format) : rule_(std::move(rule)), format_(format) {}
  std::vector<std::string> slots() const override { return rule_->slots(); }
  Norm norm() const override { return rule_->norm(); }
  double trust(double weights, double other) const override { return rule_->trust(weights, other); }
  void direct(const StepScale& step, const Piece& p) const override { rule_->direct(step, p); }
  void apply(const StepScale& step, const Piece& p) const override {
    if (format_.kind == StoredFormat::Kind::fixed) {
      rule_->apply(step, p);
      for_each_block(p, [&](const Piece& block) { round_fixed(step, block); });
    } else {
      for_each_block(p, [&](const Piece& block) { round_flexpoint(step, block); });
    }
  }

 private:
  template <typename F>
  static void for_each_block(const Piece& p, const F& f) {
    for (std::size_t at = 0; at < p.size; at += Update::block_size) {
      Piece block = p;
      float* slots[8];
      for (std::size_t i = 0; i < p.slots.size(); ++i) slots[i] = p.slots[i] + at;
      block.weights += at, block.gradient += at, block.offset += at;
      block.slots = std::span<float* const>(slots, p.slots.size());
      block.size = std::min(Update::block_size, p.size - at);
      f(block);
    }
  }
  kernels::Steps steps(float width) const {
    const float most = std::ldexp(1.0f, format_.bits - 1);
    return {.in_scale = 1 / width, .least = -most, .most = most - 1, .out_scale = width};
  }
  void round_fixed(const StepScale& step, const Piece& p) const {
    const Stream stream({.seed = 0x5704ED,
                         .step = static_cast<std::uint32_t>(step.number),
                         .shard = static_cast<std::uint32_t>(p.offset),
                         .layer = stream_layer("stored weights")});
    kernels::round_by_chance(steps(std::ldexp(1.0f, -format_.fraction)), stream, p.weights, p.weights, p.size);
  }
  void round_flexpoint(const StepScale& step, const Piece& p) const {
    float bound = 2 * kernels::max_abs(p.weights, p.size);
    rule_->apply(step, p);
    if (bound == 0) bound = kernels::max_abs(p.weights, p.size);  // weights that begin at zero
    if (bound == 0 || !std::isfinite(bound)) return;
    int exponent = 0;
    std::frexp(bound, &exponent);  // bound < 2^exponent
    kernels::round_to_steps(steps(std::ldexp(1.0f, std::max(exponent - (format_.bits - 1), -126))), p.weights,
                            p.weights, p.size);
  }

  std::unique_ptr<const Rule> rule_;
  StoredFormat format_;
};

}  // namespace

std::unique_ptr<const Rule> stored(std::unique_ptr<const Rule> rule, const StoredFormat& format) {
  return std::make_unique<Stored>(std::move(rule), format);
}

}  // namespace echelon::rules
