#pragma once
// What an op was made with, by name, for whoever must say the same in another language (onnx/). An op that has such
// settings derives from WithAttributes beside Op; one without is told by its name and its operands' types alone.

#include <cstdint>
#include <map>
#include <string>

#include "graph/op.h"

namespace echelon {

using Attributes = std::map<std::string, double>;  // whole numbers up to 2^53 are exact

class WithAttributes {
 public:
  virtual ~WithAttributes() = default;
  virtual Attributes attributes() const = 0;
};

inline Attributes attributes_of(const Op& op) {
  const auto* with = dynamic_cast<const WithAttributes*>(&op);
  return with ? with->attributes() : Attributes{};
}

}  // namespace echelon
