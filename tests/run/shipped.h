#pragma once
// The systems of recipes/systems, for tests that run them on a small network.

#include <string>

#include "recipe/system_file.h"
#include "recipe/toml.h"
#include "tests/support/source_path.h"
#include "world/os/disk.h"

namespace echelon::test {

inline const SystemPlaces shipped{source_path("recipes/systems")};

// The tables of a system as TOML.
inline std::string tables_of(const SystemFile& system) {
  std::string text;
  for (const auto& [axis, table] : axes(system)) {
    Options plain = *table;
    std::string inner;  // [rule.optim]
    for (const auto& [key, option] : table->items)
      if (const auto* nested = std::get_if<Option::Table>(&option.value)) {
        inner += fmt::format("[{}.{}]\n{}", axis, key, write_toml(**nested));
        plain.items.erase(key);
      }
    text += fmt::format("[{}]\n{}{}", axis, write_toml(plain), inner);
  }
  return text;
}

}  // namespace echelon::test
