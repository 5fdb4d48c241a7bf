// Any text is either refused with BadInput or is a request that a run can fulfil.

#include <cmath>
#include <cstdint>

#include "base/error.h"
#include "track/control.h"

int fuzz_control(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  try {
    const ControlRequest request = parse_control({reinterpret_cast<const char*>(data), size});
    check_control(request);
    if (request.action == "resize")
      invariant(request.value >= 1 && request.value <= most_workers_asked, "a number of workers");
    if (request.action == "rate") invariant(std::isfinite(request.value) && request.value > 0, "a factor");
  } catch (const BadInput&) {
  }
  return 0;
}
