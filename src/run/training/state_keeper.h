#pragma once
// Keeps a training's state in memory that outlives its ranks (world/os/kept_state.h), and begins with it again.
//
// Where every rank has the whole model and all do their steps together, the state is usually kept after every step, on
// every node, each of its ranks copying a part of it. Elsewhere it is gathered on rank 0 first, which costs more: it is
// kept where the ranks meet anyway, and after every `steps_between` steps. Every other node is then sent a copy, so
// that the loss of any node leaves one. The steps since then are done again. Who wants to, chooses (Keep).
//
// Where ranks go at their own pace, the order in which each took its messages is noted too, and with it the same steps
// are done again: the updates that they had made are not lost (world/mailbox/message_order.h).

#include <memory>
#include <string_view>
#include <vector>

#include "parallel/engine.h"
#include "world/mailbox/message_order.h"
#include "world/os/kept_state.h"

namespace echelon {

// Which of the world's ranks share the memory in which a state is kept: those of one launcher.
struct KeepingRanks {
  int first = 0;
  int count = 0;             // 0: all ranks of the world
  bool other_nodes = false;  // there are ranks of other launchers
};

enum class Keep {
  usual,       // buddy where that costs little, else replay
  buddy,       // a copy after every step
  replay,      // a copy now and then; the steps since then are done again
  checkpoint,  // no copy; the steps since the last checkpoint on the disk are done again
};

class StateKeeper {
 public:
  static constexpr std::int64_t steps_between = 50;

  // In how many parts the ranks of one launcher keep the state of such a training. Only ranks with shards do steps.
  static int parts_of(bool each_step, const KeepingRanks& ranks, int shards) {
    return each_step ? std::clamp(std::min(ranks.count, shards - ranks.first), 1, KeptState::most_parts) : 1;
  }

  // All must outlive it.
  // `each_step`: every rank has the whole model, and all do their steps together.
  StateKeeper(KeptState& kept, Engine& engine, Team& team, const KeepingRanks& ranks, bool each_step, Keep keep)
      : kept_(kept), engine_(engine), team_(team), ranks_(ranks), each_step_(each_step), keep_(keep) {}

  bool each_step() const { return each_step_; }
  // Whether the state is to be kept when so many steps are done.
  bool due(std::int64_t step) const { return every() > 0 && step % every() == 0; }
  bool keeps_copies() const { return every() > 0; }  // else only to hand over to another generation
  void count_step(std::int64_t step) { kept_.count_step(step); }
  // All ranks call it at the same step, with the same position and text. Collective. Allocates nothing after the
  // first time where it is called after each step.
  void keep(const KeptState::Position& position, std::string_view text);
  // Collective: all ranks begin with the newest state, that of rank 0's node.
  KeptState::Position load(std::string& text);
  // The same, but the tensors are left as they are. Collective.
  KeptState::Position load_position(std::string& text);
  // After load(): goes on as the notes say, if all ranks have theirs; else they begin anew. How many messages of this
  // rank are noted; -1: some rank has no notes. Collective.
  std::int64_t repeat_messages(const KeptState::Position& loaded);
  // Before that: the engine's messages are noted. `training` names what must be the same for that.
  void note_messages(std::string_view training);

  void ask_for_workers(int workers) { kept_.ask_for_workers(workers); }
  // Called by all ranks with the same text, or by rank 0: each launcher is told once.
  void set_wish(std::string_view text) {
    if (team_.world().rank() == ranks_.first) kept_.set_wish(text);
  }
  void set_pace(double seconds) { kept_.set_pace(seconds); }
  bool change_wanted() const { return kept_.change_wanted(); }
  // Failure once the launcher has not said for too long that this node belongs to the job.
  void expect_valid(double now);

 private:
  std::int64_t every() const {
    if (keep_ == Keep::checkpoint) return 0;
    return keep_ == Keep::buddy || (keep_ == Keep::usual && each_step_) ? 1 : steps_between;
  }
  std::span<const StateSpan> tensors();
  void copy_to_other_nodes(const KeptState::Position& position, std::string_view text);

  KeptState& kept_;
  Engine& engine_;
  Team& team_;
  const KeepingRanks ranks_;
  const bool each_step_;
  const Keep keep_;
  std::vector<StateSpan> tensors_;
  std::unique_ptr<MessageOrder> order_;  // null: the engine takes no messages
};

}  // namespace echelon
