// Any bytes are either refused with BadInput, or are an encoder that reads and encodes a table, or refuses it.

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "data/table/encoder.h"

int fuzz_encoder(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const data::TableEncoder encoder(parse_json(text, "input"), "input");
    const std::string_view rows = "x,c,d,y\n1,red,2024-01-01,0.5\n,blue,,1.5\n";
    const auto bytes = std::as_bytes(std::span(rows));
    const auto source = data::memory_source("rows", {bytes.begin(), bytes.end()});
    encoder.encode(encoder.read(source, false), false);
    encoder.encode(encoder.read(source, true), true);
  } catch (const BadInput&) {
  }
  return 0;
}
