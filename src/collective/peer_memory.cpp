#include "collective/peer_memory.h"

#include "collective/group_state.h"

namespace echelon {

std::vector<const std::byte*> copies_of_members(Group& group, std::span<const std::byte> mine) {
  GroupState& state = group.state();
  const SharedAddress address = state.control ? state.shared_address(mine) : SharedAddress{};
  std::vector<const std::byte*> copies;
  if (address.block == 0) return copies;
  for (int m = 0; m < group.size(); ++m) copies.push_back(state.pointer_to(address, m));
  return copies;
}

}  // namespace echelon
