#include "cli/answers/number_rows.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "data/formats/csv.h"

namespace echelon::cli {

namespace {

std::optional<float> number_in(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  float x = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(x)) return std::nullopt;
  return x;
}

std::size_t label_column(const std::vector<data::CsvRows::Cell>& row, bool header, const std::string& label) {
  if (header)
    for (const std::string& name :
         label.empty() ? std::vector<std::string>{"label", "class", "target"} : std::vector{label})
      for (std::size_t c = 0; c < row.size(); ++c)
        if (row[c].text == name) return c;
  return header && !label.empty() ? std::string::npos : row.size() - 1;
}

}  // namespace

std::vector<float> read_number_rows(const data::Source& source, const NumberRowsFormat& format) {
  data::CsvRows rows(source, format.delimiter);
  std::vector<data::CsvRows::Cell> row;
  std::vector<float> numbers;
  std::vector<std::string> problems;
  std::size_t left_out = std::string::npos, width = 0;
  const auto wanted = static_cast<std::size_t>(format.sample.elements());
  bool first = true;
  while (rows.next(row)) {
    if (first) {
      first = false, width = row.size();
      const bool header = std::ranges::none_of(row, [](const auto& c) { return number_in(c.text).has_value(); });
      if (width == wanted + 1) left_out = label_column(row, header, format.label);
      if (width != wanted && left_out == std::string::npos)
        bad_input("{} has {} numbers in a row, but this network reads {} ({})", source.name(), width, wanted,
                  to_string(format.sample));
      if (header) continue;
    }
    if (row.size() != width) {
      problems.push_back(fmt::format("line {}: {} cells instead of {}", rows.line(), row.size(), width));
      continue;
    }
    for (std::size_t c = 0; c < width; ++c) {
      if (c == left_out) continue;
      const auto value = number_in(row[c].text);
      if (!value)
        problems.push_back(fmt::format("line {}, column {}: '{}' is no number", rows.line(), c + 1, row[c].text));
      numbers.push_back(value.value_or(0));
    }
  }
  if (!problems.empty()) {
    constexpr std::size_t shown = 10;
    std::string text = fmt::format("{}:", source.name());
    for (std::size_t i = 0; i < std::min(shown, problems.size()); ++i) text += "\n  " + problems[i];
    if (problems.size() > shown) text += fmt::format("\n  and {} more", problems.size() - shown);
    throw BadInput(text);
  }
  if (numbers.empty()) bad_input("{}: no row in it", source.name());
  return numbers;
}

}  // namespace echelon::cli
