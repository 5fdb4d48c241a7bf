#include "track/metric_line.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace echelon {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

class LineReader {
 public:
  explicit LineReader(std::string_view line) : rest_(line) {}

  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool at_end() const { return rest_.empty(); }
  // A text without escapes, of printable ASCII.
  std::optional<std::string_view> text() {
    if (!take('"')) return std::nullopt;
    const auto end = rest_.find('"');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view found = rest_.substr(0, end);
    if (!std::ranges::all_of(found, [](char c) { return c >= 0x20 && c < 0x7f && c != '\\'; })) return std::nullopt;
    rest_.remove_prefix(end + 1);
    return found;
  }
  // A number as JSON writes it, or one of the three that JSON does not have.
  std::optional<double> number(bool* whole) {
    if (!rest_.empty() && rest_.front() == '"') {
      const auto word = text();
      *whole = false;
      if (word == "nan") return std::nan("");
      if (word == "inf") return INFINITY;
      if (word == "-inf") return -INFINITY;
      return std::nullopt;
    }
    std::size_t n = rest_.starts_with('-') ? 1 : 0;
    if (n >= rest_.size() || !is_digit(rest_[n])) return std::nullopt;
    if (rest_[n] == '0' && n + 1 < rest_.size() && is_digit(rest_[n + 1])) return std::nullopt;
    double value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc() || end[-1] == '.' || !is_digit(end[-1])) return std::nullopt;
    const std::string_view written(rest_.data(), static_cast<std::size_t>(end - rest_.data()));
    if (written.find(".e") != std::string_view::npos || written.find(".E") != std::string_view::npos)
      return std::nullopt;
    *whole = written.find_first_of(".eE") == std::string_view::npos;
    rest_.remove_prefix(written.size());
    return value;
  }

 private:
  std::string_view rest_;
};

constexpr double largest_exact_integer = 9007199254740992.0;

}  // namespace

std::optional<MetricPoint> parse_plain_metric(std::string_view line) {
  LineReader in(line);
  MetricPoint point;
  bool has_step = false, has_epoch = false, has_time = false;
  if (!in.take('{')) return std::nullopt;
  do {
    const auto key = in.text();
    if (!key || !in.take(':')) return std::nullopt;
    bool whole = false;
    const auto value = in.number(&whole);
    if (!value) return std::nullopt;
    bool twice = false;
    if (*key == "step") {
      if (!whole || std::abs(*value) >= largest_exact_integer) return std::nullopt;
      point.step = static_cast<std::int64_t>(*value);
      twice = std::exchange(has_step, true);
    } else if (*key == "epoch") {
      point.epoch = *value;
      twice = std::exchange(has_epoch, true);
    } else if (*key == "time") {
      point.time = *value;
      twice = std::exchange(has_time, true);
    } else {
      // In the order of keys, as the careful reader gives them.
      const auto at =
          std::ranges::lower_bound(point.values, *key, {}, [](const auto& v) -> std::string_view { return v.first; });
      twice = at != point.values.end() && at->first == *key;
      if (!twice) point.values.emplace(at, *key, *value);
    }
    if (twice || point.values.size() > 64) return std::nullopt;
  } while (in.take(','));
  if (!in.take('}') || !in.at_end() || !has_step) return std::nullopt;
  return point;
}

}  // namespace echelon
