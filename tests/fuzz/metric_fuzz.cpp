// Any line of a metrics file is either none or a point that survives being written and read again.

#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "track/metrics.h"

int fuzz_metric(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  const auto point = parse_metric({reinterpret_cast<const char*>(data), size});
  if (!point) return 0;
  std::string line = to_jsonl(*point);
  invariant(line.ends_with('\n') && line.find('\n') == line.size() - 1, "a point is one line");
  line.pop_back();
  const auto again = parse_metric(line);
  const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  invariant(again && again->step == point->step && same(again->epoch, point->epoch) && same(again->time, point->time) &&
                again->values.size() == point->values.size(),
            "a point changes when written and read again");
  for (const auto& [name, value] : point->values) {
    const double* const found = again->find(name);
    invariant(found && same(*found, value), "a value changes when written and read again");
  }
  return 0;
}
