#pragma once
// JSON (nlohmann's), and one careful way to read it from outside: duplicate keys, deep nesting and huge counts are
// refused while parsing. Objects are kept sorted by key, so `dump()` of equal values gives equal bytes.

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

namespace echelon {

using Json = nlohmann::json;

struct JsonLimits {
  int depth = 32;                   // of nested objects and arrays
  std::size_t values = 10'000'000;  // numbers, strings, objects, ... in all
};

// The value of `text`. A BadInput "WHERE: byte 17: ..." if it is not JSON or goes beyond the limits.
Json parse_json(std::string_view text, std::string_view where, JsonLimits limits = {});

}  // namespace echelon
