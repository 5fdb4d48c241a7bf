#pragma once
// Reading what other members have in memory from Group::allocate, in place. Whoever does so sees to it that nobody
// writes meanwhile: with a barrier (collectives.h) before and after. No state; thread-safe.

#include <cstddef>
#include <span>
#include <vector>

#include "collective/group.h"

namespace echelon {

// By member, this one among them: where its copy of `mine` lies, for this process. Empty where the world has no shared
// memory.
std::vector<const std::byte*> copies_of_members(Group& group, std::span<const std::byte> mine);

}  // namespace echelon
