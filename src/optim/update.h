#pragma once
// One step's update of a whole model: clipping, the update rule, and the running statistics. The work is cut into
// blocks that never cross a parameter's border, and any core may do any block: sums are taken over whole blocks by one
// core each and folded in the order of blocks, so the result is the same bits for any number of cores (law 1).
//
// An update has one to four phases. In each, the cores run disjoint ranges of blocks at the same time; when all are
// done, one of them folds; then comes the next phase:
//
//   update.begin({...});                              // one core
//   for (int phase = 0; phase < update.phases(); ++phase) {
//     update.run(phase, update.part(core, cores));    // every core
//     barrier();
//     if (core == 0) update.fold(phase);
//     barrier();                                      // not needed after the last phase
//   }
//
// Plain rules without clipping by norm have one phase, and `fold` does nothing. `run` allocates nothing. Owns the
// rule's state ("slots"); parameters and contributions belong to the caller and must outlive the update.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "optim/rule.h"
#include "tensor/buffer.h"

namespace echelon {

// One parameter in the flat buffers, in numbers. A weight moves against its gradient; a statistic (batch norm's running
// mean) moves towards the value that a step contributes: new = old + rate * (contributed - old).
struct TrainedSpan {
  std::size_t offset = 0, size = 0;
  std::size_t rows = 1;    // of a matrix; 1: it is none
  bool decays = true;      // whether weight decay, and scaling by norms, apply
  bool statistic = false;  // no weight: no gradient, no clipping, no state
  float rate = 0.1f;       // of a statistic
  double lr_scale = 1;     // of a weight: its rate is the step's times this
  // Another update has it, on another rank: here it has no memory, and its blocks are only counted, so that the blocks
  // of a model have the same numbers wherever its parameters are.
  bool elsewhere = false;
};

// Limits on the gradient, as torch.nn.utils has them; 0 is no limit. First by value, then by norm.
struct Clip {
  double value = 0;  // every element is brought into [-value, value]
  double norm = 0;   // the whole gradient is scaled so that its norm is at most this
};

class Update {
 public:
  static constexpr std::size_t block_size = 4096;  // numbers; small enough to stay in the nearest cache

  struct Block {
    std::size_t offset, size;  // in the flat buffers
    std::size_t segment;
  };
  struct BlockRange {
    std::size_t first, last;  // blocks [first, last)
  };
  struct Slot {
    std::string name;
    std::span<float> values;  // as long as the parameters that are held, at the same offsets
  };

  // Gives memory by name, zeroed, that outlives the update.
  using Memory = std::function<std::span<std::byte>(const std::string& name, std::size_t bytes)>;

  // Segments are in the order of their offsets (those that are not elsewhere) and do not overlap. `parameters` and
  // `contributions` are flat buffers of equal length. Several updates can do one piece of work together, each its own
  // blocks, when parameters, contributions and what `memory` gives are the same for all of them; without `memory` the
  // update has its own.
  // An update may hold a range of the elements only, which begins and ends at borders of blocks: `parameters` and
  // `contributions` are then that range, from the element `held_from` on, and only the blocks held() may be run.
  Update(std::unique_ptr<const Rule> rule, Clip clip, std::vector<TrainedSpan> segments, std::span<float> parameters,
         std::span<float> contributions, const Memory& memory = {}, std::size_t held_from = 0);

  const std::vector<Slot>& slots() const { return slots_; }  // the state, for checkpoints
  const std::vector<Block>& blocks() const { return blocks_; }
  BlockRange all() const { return {0, blocks_.size()}; }
  BlockRange held() const { return held_; }  // all but those before and behind the elements that are held
  BlockRange part(std::size_t core, std::size_t cores) const;  // about the same number of elements for each

  int phases() const { return static_cast<int>(phases_.size()); }
  // `step.grad_scale` is what makes a mean of the contributions (1 / shards); it counts for statistics too.
  void begin(const StepScale& step) { step_ = step, clip_scale_ = 1; }
  void run(int phase, BlockRange range);  // may overwrite the contributions
  void fold(int phase);
  // The sums of squares that fold(phase) adds up, by block; none if it needs none. Where parameters are elsewhere, the
  // caller fills in what their blocks came to, before it folds.
  struct Squares {
    std::span<double> weights, other;
  };
  Squares squares(int phase);
  void run_alone(const StepScale& step);  // all of it, on this core
  void move_statistics();                 // nothing else: somebody else makes the step. Contributions are means

  // Of the mean gradient, before clipping by norm; 0 unless something needed it. After the last phase.
  double gradient_norm() const { return gradient_norm_; }

 private:
  // Sums over the gradient; the rule's `precondition`, of whole parameters; its `direct`; its `apply`.
  enum class Phase { measure, precondition, direct, apply };

  void measure(const Block& block, std::size_t index);
  void precondition(const Block& block, std::size_t index);
  void direct(const Block& block, std::size_t index);
  void apply(const Block& run);
  void move_statistic(const Block& run);
  float* parameters(const Block& run) const { return parameters_.data() + (run.offset - held_from_); }
  float* contributions(const Block& run) const { return contributions_.data() + (run.offset - held_from_); }
  Piece piece(const Block& run, std::span<float*> slots) const;
  StepScale clipped(std::size_t segment) const;                            // the step as the rule sees it
  double sum(std::span<const double> squares, std::size_t segment) const;  // in the order of blocks

  std::unique_ptr<const Rule> rule_;
  Clip clip_;
  std::vector<TrainedSpan> segments_;
  std::span<float> parameters_, contributions_;
  const std::size_t held_from_;
  BlockRange held_{0, 0};
  std::vector<Buffer> own_;  // of slots and squares, if no memory was given
  std::vector<Slot> slots_;
  std::vector<Block> blocks_;
  std::vector<std::size_t> first_block_;      // of each segment, and the end
  std::vector<std::size_t> elements_before_;  // each block, and the end
  std::vector<Phase> phases_;

  StepScale step_;
  double clip_scale_ = 1, gradient_norm_ = 0;
  std::span<double> weight_squares_, other_squares_;  // each block's sum of squares
  std::vector<double> trust_;                         // of each segment
};

}  // namespace echelon
