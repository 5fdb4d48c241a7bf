#pragma once
// The quick way to read a line of metrics.jsonl that looks as `to_jsonl` writes it. A pure function, thread-safe.

#include <optional>
#include <string_view>

#include "track/metrics.h"

namespace echelon {

// The point of a line; none if there is anything unusual in it (blanks, escapes, nesting, a key twice, a number that
// is written in another way): then the careful reader decides what it is.
std::optional<MetricPoint> parse_plain_metric(std::string_view line);

}  // namespace echelon
