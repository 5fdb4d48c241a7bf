// Any bytes are either refused with BadInput or are a tree that survives being written and read again; and reading a
// recipe out of any tree ends in a recipe or in a list of problems.

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "recipe/recipe.h"
#include "recipe/toml.h"

int fuzz_recipe(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const Options options = parse_toml(text, "input", {.bytes = 1 << 16, .depth = 8, .values = 2000});
    Problems problems;
    read_recipe("input", {options, {}, {}}, problems);
    const std::string written = write_toml(options);
    invariant(write_toml(parse_toml(written, "again")) == written, "TOML changes when written and read again");
  } catch (const BadInput&) {
  }
  return 0;
}
