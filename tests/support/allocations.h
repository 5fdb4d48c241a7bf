#pragma once
// Counts every allocation of the process, C++ or C, except those that oneDNN makes inside its own calls: it keeps a
// small map of arguments for each primitive that it executes, and nobody outside can prevent that.

#include <cstdint>

namespace echelon::test {

bool allocations_are_counted();  // false under sanitizers, which have a malloc of their own
std::int64_t allocations();      // since the program started, on all threads

}  // namespace echelon::test
