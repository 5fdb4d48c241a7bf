#pragma once
// Workers that lie about their gradients, for experiments: the last `count` ones, in every step. What they do to it is
// a pure function of rank, step and seed, so that every system that is compared meets the same lies. One that flips
// labels does not lie about its gradient; its samples have the classes in the opposite order (data/flip_labels.h).

#include <span>
#include <string>
#include <vector>

#include "base/options.h"
#include "optim/update.h"
#include "parallel/team/team.h"

namespace echelon {

struct Composition;

enum class Lie {
  random,            // normal numbers, `strength` times as large as the gradient's
  scaled,            // the gradient, `strength` times
  sign_flip,         // the gradient, minus `strength` times
  label_flip,        // the gradient for labels in the opposite order
  little_is_enough,  // the honest workers' mean, less `strength` of their deviation in every number (Baruch et al.
                     // 2019)
  colluding,         // all liars alike: minus `strength` times the honest workers' mean (Xie et al. 2019)
};

struct Byzantine {
  int count = 0;  // 0: nobody lies
  Lie lie = Lie::sign_flip;
  double strength = 1;
};

struct LieRow {
  const char* name;
  Lie lie;
  double strength;  // the default
};
std::span<const LieRow> lies();

inline bool lies_here(const Byzantine& byzantine, int worker, int workers) {
  return worker >= workers - byzantine.count;
}

// Adds a problem for each reason why workers of this system cannot lie so. `composition` null: exact training.
void check_byzantine(const Byzantine& byzantine, const Composition* composition, int workers, bool has_labels,
                     Problems& problems);

// What becomes of the gradient at this worker. Collective, where liars have to know the honest workers' gradients.
class Liar {
 public:
  Liar(const Byzantine& byzantine, Team& team, std::uint64_t seed, std::size_t floats);
  void change(std::span<float> gradient, const std::vector<TrainedSpan>& segments, std::int64_t step);

 private:
  void learn_of_the_honest(std::span<const float> gradient);

  Byzantine byzantine_;
  Team& team_;
  std::uint64_t seed_;
  bool lies_;
  std::span<float> moments_;  // of the honest workers: sums, then sums of squares; in shared memory where there is some
};

}  // namespace echelon
