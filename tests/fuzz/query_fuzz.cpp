// Any question is either refused or becomes an expression in which nothing of it stands but the shape: as many question
// marks as values.

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "registry/query.h"

int fuzz_query(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  try {
    const CompiledQuery query = compile_query({reinterpret_cast<const char*>(data), size});
    const auto marks = std::ranges::count(query.where, '?') + std::ranges::count(query.order, '?');
    invariant(marks == std::ssize(query.values), "a value is not bound");
    invariant(query.where.find_first_of("\"';") == std::string::npos, "something of the question is in the SQL");
  } catch (const BadInput&) {
  }
  return 0;
}
