#pragma once
// Arithmetic on sizes that come from outside (a recipe's numbers, a file's header): a result that does not fit is a
// TooLarge that names what was computed, never a number that wrapped around. Pure functions, thread-safe.

#include <concepts>
#include <limits>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace echelon {

// A size beyond what can be counted, addressed or stored. The user cures it by asking for less, so it is a BadInput.
class TooLarge : public BadInput {
  using BadInput::BadInput;
};

// a + b, or TooLarge: "the joined extent: 9223372036854775807 + 1 is too large".
template <std::integral T>
T checked_add(T a, T b, std::string_view what) {
  T sum{};
  if (__builtin_add_overflow(a, b, &sum)) throw TooLarge(fmt::format("{}: {} + {} is too large", what, a, b));
  return sum;
}

// a * b, or TooLarge: "the enlarged width: 1099511627776 x 1048576 is too large".
template <std::integral T>
T checked_multiply(T a, T b, std::string_view what) {
  T product{};
  if (__builtin_mul_overflow(a, b, &product)) throw TooLarge(fmt::format("{}: {} x {} is too large", what, a, b));
  return product;
}

// `value` as a To, or TooLarge if it does not fit.
template <std::integral To, std::integral From>
To checked_narrow(From value, std::string_view what) {
  if (!std::in_range<To>(value))
    throw TooLarge(
        fmt::format("{}: {} is too large; at most {} is possible", what, value, std::numeric_limits<To>::max()));
  return static_cast<To>(value);
}

}  // namespace echelon
