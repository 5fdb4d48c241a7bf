// Any bytes are either refused with BadInput or are a value that survives being written and read again.

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/json.h"

int fuzz_json(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const Json value = parse_json(text, "input", {.depth = 16, .values = 1000});
    const std::string written = value.dump();
    invariant(parse_json(written, "again").dump() == written, "JSON changes when written and read again");
  } catch (const BadInput&) {
  }
  return 0;
}
