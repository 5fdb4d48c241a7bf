#pragma once
// The optimizer's state of a whole split model and what it carries from step to step, around a checkpoint: gathered on
// rank 0 from the ranks that have parts of it, and handed out again. Only rank 0 has memory for it, and only meanwhile.
// Gathering and handing out are collective.

#include <functional>
#include <string>
#include <vector>

#include "base/state.h"
#include "parallel/planned/whole_model.h"
#include "world/os/file_memory.h"

namespace echelon {

// Room for something of the whole model: in memory, or in a file that the system may take out of memory.
struct WholeMemory {
  Buffer memory;
  FileMemory file;
  std::span<std::byte> bytes;

  static WholeMemory of_buffer(std::size_t bytes);
  static WholeMemory of_file(const std::string& folder, std::size_t bytes);
};

class WholeState {
 public:
  using NewMemory = std::function<WholeMemory(std::size_t bytes)>;
  // `floats`: of the whole model. All outlive it.
  WholeState(Team& team, WholeModel& whole, std::vector<std::unique_ptr<StageCompute>>& stages, std::size_t floats,
             NewMemory new_memory);

  std::vector<StateSpan> spans();  // on rank 0: makes the memory if it is not there
  void gather();
  void scatter();  // and clears it
  void clear() { parts_.clear(); }

 private:
  using MoveSlot = std::function<void(std::span<float> whole, const WholeModel::Own& own)>;
  std::vector<StateSpan> on_rank_0();
  void move_slots(const std::vector<StateSpan>& all, const MoveSlot& visit);
  template <typename Visit>
  void move_carries(const std::vector<StateSpan>& all, const Visit& visit);

  struct Part {
    std::string name;
    WholeMemory memory;
  };
  Team& team_;
  WholeModel& whole_;
  std::vector<std::unique_ptr<StageCompute>>& stages_;
  const std::size_t floats_;
  const NewMemory new_memory_;
  std::vector<Part> parts_;
};

}  // namespace echelon
