#pragma once
// A message between two ranks of a simulation, and the operation of its sender.

#include <cstdint>
#include <vector>

#include "world/world.h"

namespace echelon::sim {

class SimOperation;

// An operation that may have been released (and used again) since.
struct OperationHandle {
  SimOperation* operation = nullptr;
  std::uint64_t generation = 0;
};

struct SimMessage {
  int from = 0, to = 0;
  Channel channel = 0;
  Label label;
  std::vector<std::byte> bytes;
  OperationHandle sender;  // is done when this message is taken; null: it is done already
};

}  // namespace echelon::sim
