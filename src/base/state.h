#pragma once
// What a part remembers from step to step, for checkpoints: named places in memory, the same names and sizes in every
// run of the same settings.

#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace echelon {

struct StateSpan {
  std::string name;
  std::span<std::byte> bytes;
};

// Of a number or struct, of all numbers of a vector or span, or of a Buffer; never of what is gone afterwards.
template <typename T>
StateSpan as_state(std::string name, T&& what) {
  static_assert(std::is_lvalue_reference_v<T> || std::ranges::borrowed_range<T>);
  if constexpr (requires { what.template as<std::byte>(); }) {
    return {std::move(name), what.template as<std::byte>()};
  } else if constexpr (std::ranges::contiguous_range<T>) {
    static_assert(std::is_trivially_copyable_v<std::ranges::range_value_t<T>>);
    return {std::move(name), std::as_writable_bytes(std::span(what))};
  } else {
    static_assert(std::is_trivially_copyable_v<std::remove_reference_t<T>>);
    return {std::move(name), std::as_writable_bytes(std::span(&what, 1))};
  }
}

inline void add_states(std::vector<StateSpan>& all, const std::string& prefix, const std::vector<StateSpan>& more) {
  for (const StateSpan& s : more) all.push_back({prefix + s.name, s.bytes});
}

}  // namespace echelon
