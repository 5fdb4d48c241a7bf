#pragma once
// Keeps a training's state in memory that outlives its ranks (world/os/kept_state.h), and begins with it again.
//
// Where every rank has the whole model and all do their steps together, the state is kept after every step, each rank
// copying a part of it. Elsewhere it is gathered first, which costs more: it is kept where the ranks meet anyway, and
// after every `steps_between` steps.

#include <string_view>
#include <vector>

#include "parallel/engine.h"
#include "world/os/kept_state.h"

namespace echelon {

class StateKeeper {
 public:
  static constexpr std::int64_t steps_between = 50;

  // In how many parts such a training keeps its state.
  static int parts_of(bool each_step, int workers, int shards) {
    return each_step ? std::clamp(std::min(workers, shards), 1, KeptState::most_parts) : 1;
  }

  // All must outlive it.
  StateKeeper(KeptState& kept, Engine& engine, const World& world, bool each_step)
      : kept_(kept), engine_(engine), rank_(world.rank()), each_step_(each_step) {}

  bool each_step() const { return each_step_; }
  // All ranks call it at the same step, with the same position and text. Collective. Allocates nothing after the
  // first time where it is called after each step.
  void keep(const KeptState::Position& position, std::string_view text);
  // Collective: all ranks begin with the newest state.
  KeptState::Position load(std::string& text);
  void ask_for_workers(int workers) { kept_.ask_for_workers(workers); }

 private:
  std::span<const StateSpan> tensors();

  KeptState& kept_;
  Engine& engine_;
  const int rank_;
  const bool each_step_;
  std::vector<StateSpan> tensors_;
};

}  // namespace echelon
