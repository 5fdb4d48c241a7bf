#include "data/table/format.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/error.h"
#include "data/formats/csv.h"
#include "data/table/value.h"

namespace echelon::data {

namespace {

constexpr std::size_t rows_to_look_at = 1000;
constexpr std::string_view utf8_mark = "\xEF\xBB\xBF";

std::string_view text_of(const Source& source) {
  const std::byte* bytes = source.at(0, source.size());
  if (!bytes) bad_input("{}: {} MiB are too much for a table in text", source.name(), source.size() >> 20);
  return {reinterpret_cast<const char*>(bytes), source.size()};
}

using Rows = std::vector<std::vector<std::string>>;

// The first rows with that delimiter; fewer if a row cannot be read.
Rows first_rows(const Source& source, char delimiter) {
  Rows rows;
  try {
    CsvRows reader(source, delimiter);
    std::vector<CsvRows::Cell> row;
    while (rows.size() < rows_to_look_at && reader.next(row)) {
      auto& copy = rows.emplace_back();
      for (const auto& cell : row) copy.emplace_back(trimmed_cell(cell.text));
    }
  } catch (const BadInput&) {  // reading it in earnest says what is wrong
  }
  return rows;
}

// How well the delimiter fits: rows that have the most usual number of cells, if that is more than one.
struct DelimiterFit {
  std::size_t rows = 0, cells = 0;
};

DelimiterFit fit_of(const Rows& rows) {
  std::map<std::size_t, std::size_t> counts;
  for (const auto& row : rows) ++counts[row.size()];
  DelimiterFit best;
  for (const auto& [cells, count] : counts)
    if (cells > 1 && count >= best.rows) best = {count, cells};
  return best;
}

char find_delimiter(const Source& source) {
  char found = ',';
  DelimiterFit best;
  for (const char delimiter : {',', ';', '\t', '|'}) {
    const DelimiterFit fit = fit_of(first_rows(source, delimiter));
    const bool better = fit.rows > best.rows || (fit.rows == best.rows && fit.cells > best.cells);
    if (fit.cells > 1 && better) best = fit, found = delimiter;
  }
  return found;
}

// A comma before the fraction: some cell is a number only so, and none only with a point.
char find_decimal(const Rows& rows, char delimiter, char usual) {
  if (delimiter == ',') return '.';
  std::size_t with_comma = 0, with_point = 0;
  for (const auto& row : rows)
    for (const auto& cell : row) {
      const bool comma = cell_number(cell, ',').has_value(), point = cell_number(cell, '.').has_value();
      if (comma && !point) ++with_comma;
      if (point && !comma) ++with_point;
      // 1,234 and 1.234 are numbers either way; beside others they decide nothing.
    }
  return with_point > 0 ? '.' : with_comma > 0 ? ',' : usual;
}

// A header: no number in it, and below it numbers, or words that are not in it. With a word twice it is one only if
// there are numbers below its words.
bool find_header(const Rows& rows, char decimal) {
  if (rows.empty()) return false;
  const auto& first = rows.front();
  const auto value = [&](const std::string& cell) {
    return cell_number(cell, decimal).has_value() || cell_date(cell, DateOrder::year_first).has_value();
  };
  if (std::ranges::any_of(first, value)) return false;
  const bool repeats = std::set<std::string>(first.begin(), first.end()).size() < first.size();
  bool values_below = false, unlike_below = false;
  for (std::size_t c = 0; c < first.size(); ++c) {
    bool again = false;
    for (std::size_t r = 1; r < rows.size(); ++r) {
      if (c >= rows[r].size()) continue;
      values_below = values_below || (value(rows[r][c]) && !(repeats && first[c].empty()));
      again = again || rows[r][c] == first[c];
    }
    unlike_below = unlike_below || !again;
  }
  return values_below || (!repeats && (unlike_below || rows.size() == 1));
}

std::string_view delimiter_words(char delimiter) {
  switch (delimiter) {
    case ',': return "commas";
    case ';': return "semicolons";
    case '\t': return "tabs";
    case '|': return "bars (|)";
    default: return "";
  }
}

}  // namespace

std::string to_string(const TableFormat& f) {
  const std::string encoding =
      fmt::format("{}{}", name_of(f.encoding), f.byte_order_mark ? " with a byte order mark" : "");
  if (f.json_lines) return fmt::format("JSON lines: {}", encoding);
  const std::string_view words = delimiter_words(f.delimiter);
  return fmt::format("delimited text: {}, cells separated by {}, {}{}, {}", encoding,
                     words.empty() ? fmt::format("'{}'", f.delimiter) : std::string(words),
                     f.decimal == ',' ? "decimal comma, " : "", f.quotes ? "some quoted" : "none quoted",
                     f.header ? "with a header" : "without a header");
}

TableFormat find_format(const SourcePtr& given, const FormatWishes& wishes) {
  const Encoding encoding = wishes.encoding.value_or(find_encoding(text_of(*given)));
  const SourcePtr whole = encoding == Encoding::utf16 ? as_utf8(given, encoding) : given;
  const Source& source = *whole;
  const std::string_view text = text_of(source);
  if (const auto zero = text.find('\0'); zero != std::string_view::npos)
    corrupt(source, zero, "text", "a byte of zero (is it a table in text?)");
  TableFormat f;
  f.byte_order_mark = text.starts_with(utf8_mark);
  if (wishes.encoding == Encoding::utf8 && !is_utf8(text))
    bad_input("{}: this is not UTF-8; set encoding = \"latin-1\" or \"utf-16\", or leave it to be found",
              source.name());
  f.encoding = encoding;
  const std::string_view content = f.byte_order_mark ? text.substr(utf8_mark.size()) : text;
  const auto begin = content.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) bad_input("{}: the file is empty", source.name());
  f.json_lines = wishes.json_lines.value_or(content[begin] == '{');
  if (f.json_lines) return f;
  f.delimiter = wishes.delimiter ? *wishes.delimiter : find_delimiter(source);
  const Rows rows = first_rows(source, f.delimiter);
  f.decimal = wishes.decimal ? *wishes.decimal : find_decimal(rows, f.delimiter, wishes.usual_decimal);
  f.header = wishes.header ? *wishes.header : find_header(rows, f.decimal);
  f.quotes = text.find('"') != std::string_view::npos;
  return f;
}

SourcePtr as_utf8(const SourcePtr& source, const TableFormat& format) { return as_utf8(source, format.encoding); }

}  // namespace echelon::data
