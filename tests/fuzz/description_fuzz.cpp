// Any bytes are either refused with BadInput, or describe samples, and the same again when they are written and read.

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "data/description.h"

int fuzz_description(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const data::DatasetInfo info = data::read_description(parse_json(text, "input"), "input");
    const Json written = data::describe(info);
    if (data::describe(data::read_description(written, "copy")) != written) __builtin_trap();
  } catch (const BadInput&) {
  }
  return 0;
}
