// Any bytes are either refused with BadInput, or are a table that can be encoded, and whose encoder survives JSON.

#include <cstdint>

#include "base/error.h"
#include "data/table/open_table.h"

int fuzz_table(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  try {
    const auto source = data::memory_source("input", {bytes, bytes + size});
    const auto rows = data::rows_of_table(data::read_table_file(source, {}));
    const auto encoded = data::encode_rows(*rows, *rows, "train");
    data::Sample sample(encoded->fields());
    for (std::uint64_t i = 0; i < encoded->size(); ++i) encoded->get(i, {}, sample.ref());
    const Json json = encoded->info().table->to_json();
    const data::TableEncoder again(json, "input");
    if (again.to_json() != json) __builtin_trap();
    again.encode(again.read(source, true), true);
  } catch (const BadInput&) {
  }
  return 0;
}
