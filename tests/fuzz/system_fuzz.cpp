// Any text is either refused with BadInput or is a system file with a list of problems; what its tables compose, fits
// together or has further problems, and what is told of its traffic are numbers.

#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "parallel/composition.h"
#include "recipe/system_file.h"

int fuzz_system(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  if (size > most_system_bytes) return 0;
  try {
    Problems problems;
    const SystemFile s = parse_system({reinterpret_cast<const char*>(data), size}, "input.toml", problems);
    Problems of_parts;
    const Composition c = read_composition({s.name, s.rule, s.exchange, s.when, s.sync, s.codec, s.order}, of_parts);
    if (!of_parts.list().empty()) return 0;
    for (const int workers : {1, 2, 5, 8}) {
      Problems together;
      check_composition(c, {.workers = workers}, together);
      if (!together.list().empty()) continue;
      const std::vector<CodecPiece> pieces{{.size = 120}, {.size = 7}, {.size = 1}};
      for (const CodecBytes bytes : {CodecBytes::usual, CodecBytes::most}) {
        const auto traffic =
            traffic_per_step(c, workers, pieces, {{0, 100}, {100, 128}}, bytes, {.batch = 32, .products = {}});
        invariant(std::isfinite(traffic.messages) && traffic.messages >= 0 && std::isfinite(traffic.bytes) &&
                      traffic.bytes >= 0,
                  "a composition's traffic is so many bytes");
      }
    }
  } catch (const BadInput&) {
  }
  return 0;
}
