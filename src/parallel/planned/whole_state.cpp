#include "parallel/planned/whole_state.h"

namespace echelon {

WholeMemory WholeMemory::of_buffer(std::size_t bytes) {
  WholeMemory whole;
  whole.memory = Buffer(bytes);
  whole.bytes = whole.memory.as<std::byte>();
  return whole;
}

WholeMemory WholeMemory::of_file(const std::string& folder, std::size_t bytes) {
  WholeMemory whole;
  whole.file = FileMemory(folder, bytes);
  whole.bytes = whole.file.as<std::byte>();
  return whole;
}

WholeState::WholeState(Team& team, WholeModel& whole, std::vector<std::unique_ptr<StageCompute>>& stages,
                       std::size_t floats, NewMemory new_memory)
    : team_(team), whole_(whole), stages_(stages), floats_(floats), new_memory_(std::move(new_memory)) {}

std::vector<StateSpan> WholeState::spans() {
  if (parts_.empty()) {
    for (const Update::Slot& slot : stages_.front()->update().slots())
      parts_.push_back({slot.name, new_memory_(floats_ * sizeof(float))});
    if (whole_.carry_bytes() > 0) parts_.push_back({"carries", new_memory_(whole_.carry_bytes())});
  }
  std::vector<StateSpan> all;
  for (const Part& part : parts_) all.push_back({part.name, part.memory.bytes});
  return all;
}

std::vector<StateSpan> WholeState::on_rank_0() {
  return team_.world().rank() == 0 ? spans() : std::vector<StateSpan>{};
}

// Calls visit(the slot of the whole model on rank 0, where a stage has its part) for each slot of the optimizer.
void WholeState::move_slots(const std::vector<StateSpan>& all, const MoveSlot& visit) {
  for (std::size_t i = 0; i < stages_.front()->update().slots().size(); ++i) {
    std::span<float> whole;
    if (!all.empty()) whole = {reinterpret_cast<float*>(all[i].bytes.data()), floats_};
    visit(whole, [i](StageCompute& stage) { return WholeModel::Held{stage.slot(i), stage.first_of_slots()}; });
  }
}

// Carried values are few, and on all ranks.
template <typename Visit>
void WholeState::move_carries(const std::vector<StateSpan>& all, const Visit& visit) {
  if (whole_.carry_bytes() == 0) return;
  Buffer own(team_.world().rank() == 0 ? 0 : whole_.carry_bytes());
  visit(all.empty() ? own.as<std::byte>() : all.back().bytes);
}

void WholeState::gather() {
  const std::vector<StateSpan> all = on_rank_0();
  move_slots(all, [&](std::span<float> whole, const WholeModel::Own& own) {
    whole_.collect(WholeModel::What::state, whole, own);
  });
  move_carries(all, [&](std::span<std::byte> carries) { whole_.collect_carries(carries); });
}

void WholeState::scatter() {
  const std::vector<StateSpan> all = on_rank_0();
  move_slots(all, [&](std::span<float> whole, const WholeModel::Own& own) {
    whole_.distribute(WholeModel::What::state, whole, own);
  });
  move_carries(all, [&](std::span<std::byte> carries) { whole_.distribute_carries(carries); });
  clear();
}

}  // namespace echelon
