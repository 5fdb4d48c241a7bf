#pragma once
// What is piped into the program.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace echelon {

// All of it, to its end. BadInput if it is more than `limit` bytes; DiskError if it cannot be read.
std::vector<std::byte> read_standard_input(std::uint64_t limit);

}  // namespace echelon
