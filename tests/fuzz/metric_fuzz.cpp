// Any line of a metrics file is either none or a point that survives being written and read again. What the quick
// reader takes, a JSON parser reads as the same.

#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "track/metric_line.h"
#include "track/metrics.h"

int fuzz_metric(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto plain = parse_plain_metric(text)) {
    const Json json = parse_json(text, "line");
    invariant(json.at("step").is_number_integer() && json["step"].get<std::int64_t>() == plain->step, "another step");
    for (const auto& [name, value] : plain->values)
      invariant(json.at(name).is_string() || json[name].get<double>() == value, "another value");
  }
  const auto point = parse_metric(text);
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
