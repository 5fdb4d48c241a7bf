#include "run/training/state_keeper.h"

#include <algorithm>

#include "base/crc32c.h"
#include "base/error.h"

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
  if (order_) {  // before any rank sends the first message of what comes next
    order_->mark(kept_.last_number() + 1);
    team_.all_gather_struct(char{});
  }
  engine_.gather();
  const int mine = team_.world().rank() - ranks_.first;
  const std::uint64_t before = kept_.last_number();
  if (each_step_ || team_.world().rank() == 0) {
    if (mine < kept_.parts()) kept_.write(mine, position, text, tensors());
  }
  if (!each_step_ && ranks_.other_nodes) copy_to_other_nodes(position, text);
  if (kept_.last_number() == before) kept_.pass();
  engine_.end_gather();
}

void StateKeeper::note_messages(std::string_view training) {
  const World& world = team_.world();
  const int place = world.rank() - ranks_.first;
  static_assert(KeptState::note_bytes >=
                MessageOrder::most_events * MessageOrder::channels * sizeof(MessageOrder::Event));
  const std::string all = fmt::format("rank {} of {}: {}", world.rank(), world.size(), training);
  auto order = std::make_unique<MessageOrder>(kept_.notes(place), crc32c(std::as_bytes(std::span(all))));
  if (engine_.follow(*order)) order_ = std::move(order);
}

std::int64_t StateKeeper::repeat_messages(const KeptState::Position& loaded) {
  if (!order_) return 0;
  const std::uint64_t newest = kept_.version();
  const bool mine = newest > 0 && kept_.step() == loaded.step && order_->rewind(newest);
  const std::vector<char> all = team_.all_gather_struct(static_cast<char>(mine));
  if (std::ranges::all_of(all, [](char has) { return has != 0; })) return static_cast<std::int64_t>(order_->noted());
  order_->forget();
  return -1;
}

// Rank 0 has all of it; the first rank of each other node writes it down there.
void StateKeeper::copy_to_other_nodes(const KeptState::Position& position, std::string_view text) {
  const bool has = team_.world().rank() == 0;
  std::uint64_t size = 0;
  if (has)
    for (const StateSpan& t : tensors()) size += t.bytes.size();
  team_.broadcast(std::as_writable_bytes(std::span(&size, 1)));
  std::vector<std::byte> all(size);
  if (has) {
    auto to = all.begin();
    for (const StateSpan& t : tensors_) to = std::ranges::copy(t.bytes, to).out;
  }
  team_.broadcast(all);
  const bool writes = team_.world().rank() == ranks_.first && !has;
  const StateSpan whole{"all", all};
  if (writes) kept_.write(0, position, text, std::span(&whole, 1));
}

KeptState::Position StateKeeper::load_position(std::string& text) {
  KeptState::Position position;
  if (team_.world().rank() == 0) position = kept_.read_position(text);
  std::uint64_t length = text.size();
  team_.broadcast(std::as_writable_bytes(std::span(&position, 1)));
  team_.broadcast(std::as_writable_bytes(std::span(&length, 1)));
  text.resize(length);
  team_.broadcast(std::as_writable_bytes(std::span(text)));
  return position;
}

KeptState::Position StateKeeper::load(std::string& text) {
  const KeptState::Position position = load_position(text);
  if (team_.world().rank() == 0) kept_.read(tensors());
  engine_.scatter();
  return position;
}

void StateKeeper::expect_valid(double now) {
  if (now <= kept_.valid_until()) return;
  kept_.set_outdated();
  fail("this node's launcher has not reached the others for too long, so they may go on without it");
}

}  // namespace echelon
