#include "run/state_keeper.h"

namespace echelon {

std::span<const StateSpan> StateKeeper::tensors() {
  if (!each_step_) tensors_.clear();  // they may lie elsewhere each time
  if (tensors_.empty()) {
    tensors_ = engine_.state();
    tensors_.push_back(as_state("weights", engine_.model()));
  }
  return tensors_;
}

void StateKeeper::keep(const KeptState::Position& position, std::string_view text) {
  engine_.gather();
  if (rank_ < kept_.parts()) kept_.write(rank_, position, text, tensors());
  engine_.end_gather();
}

KeptState::Position StateKeeper::load(std::string& text) {
  const KeptState::Position position = kept_.read_position(text);
  if (rank_ == 0) kept_.read(tensors());
  engine_.scatter();
  return position;
}

}  // namespace echelon
