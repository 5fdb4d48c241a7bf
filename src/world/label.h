#pragma once
// What a message is, so that its two sides can be compared: the operation that it belongs to, that operation's number
// among those of its channel, the step within it, and the type of its numbers.

#include <cstdint>
#include <string>
#include <string_view>

namespace echelon {

enum class OperationKind : std::uint8_t {
  plain,
  barrier,
  broadcast,
  reduce,
  all_reduce,
  reduce_scatter,
  all_gather,
  gather,
  scatter,
  all_to_all,
};

struct Label {
  OperationKind kind = OperationKind::plain;
  std::uint8_t type = 0;     // of the numbers, lower half: 0 bytes, 1 float32, 2 float64, 3 int32, 4 int64;
                             // upper half what becomes of them: 0 sum or nothing, 1 min, 2 max, 3 mean
  std::uint16_t step = 0;    // within the operation
  std::uint32_t number = 0;  // of the operation

  friend bool operator==(const Label&, const Label&) = default;
};

std::string_view to_string(OperationKind kind);  // "all-reduce"; "unknown" if it is none
std::string to_string(const Label& label);       // "all-reduce 7, step 2, of float32"

}  // namespace echelon
