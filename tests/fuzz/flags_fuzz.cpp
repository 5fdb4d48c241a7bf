// Any text after --link or --straggler is either refused with BadInput or is a link that carries something, a worker
// that is slower. The first byte chooses the flag.

#include <cmath>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "cli/training/experiment_flags.h"

int fuzz_flags(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  try {
    if (data[0] % 2 == 0) {
      const LinkLimit link = cli::read_link(text);
      invariant(
          std::isfinite(link.bytes_per_second) && std::isfinite(1 / link.bytes_per_second) && link.bytes_per_second > 0,
          "a message takes some time on a link, and ends");
      invariant(std::isfinite(link.latency) && link.latency >= 0, "a message arrives after it has left");
    } else {
      const Straggler s = cli::read_straggler(text);
      invariant(s.rank >= -1 && s.chance > 0 && s.chance <= 1, "a straggler can be met");
      for (std::int64_t step = 0; step < 4; ++step) {
        const double factor = slowness({s}, 1, 3, step, 7);
        invariant(factor == 1 || factor == s.factor, "a step is hit by it or is not");
        invariant(factor >= 1 && std::isfinite(factor), "a straggler is not quicker than others");
      }
    }
  } catch (const BadInput&) {
  }
  return 0;
}
