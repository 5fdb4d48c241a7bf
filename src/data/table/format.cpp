#include "data/table/format.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/error.h"
#include "data/formats/csv.h"
#include "data/table/value.h"

namespace echelon::data {

bool is_utf8(std::string_view s) {
  for (std::size_t i = 0; i < s.size();) {
    const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(s[k]); };
    const unsigned first = byte(i);
    if (first < 0x80) {
      ++i;
      continue;
    }
    const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || i + length > s.size()) return false;
    std::uint32_t point = first & (0xFFu >> (length + 1));
    for (std::size_t k = 1; k < length; ++k) {
      if ((byte(i + k) & 0xC0u) != 0x80) return false;
      point = point << 6 | (byte(i + k) & 0x3Fu);
    }
    constexpr std::array<std::uint32_t, 5> least = {0, 0, 0x80, 0x800, 0x10000};
    if (point < least[length] || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) return false;
    i += length;
  }
  return true;
}

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

std::string_view name_of(Encoding encoding) { return encoding == Encoding::utf8 ? "UTF-8" : "Latin-1"; }

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

TableFormat find_format(const Source& source, const FormatWishes& wishes) {
  const std::string_view text = text_of(source);
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
    bad_input("{}: this is UTF-16; convert it: iconv -f UTF-16 -t UTF-8", source.name());
  if (const auto zero = text.find('\0'); zero != std::string_view::npos)
    corrupt(source, zero, "text", "a byte of zero (is it a table in text?)");
  TableFormat f;
  f.byte_order_mark = text.starts_with(utf8_mark);
  const bool utf8 = is_utf8(text);
  if (wishes.encoding == Encoding::utf8 && !utf8)
    bad_input("{}: this is not UTF-8; set encoding = \"latin-1\", or leave it to be found", source.name());
  f.encoding = wishes.encoding.value_or(utf8 ? Encoding::utf8 : Encoding::latin1);
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

SourcePtr as_utf8(const SourcePtr& source, const TableFormat& format) {
  if (format.encoding == Encoding::utf8) return source;
  const std::string_view text = text_of(*source);
  std::vector<std::byte> out;
  out.reserve(text.size() + static_cast<std::size_t>(std::ranges::count_if(
                                text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; })));
  for (const char c : text) {
    const auto point = static_cast<unsigned char>(c);
    if (point < 0x80) {
      out.push_back(static_cast<std::byte>(point));
    } else {
      out.push_back(static_cast<std::byte>(0xC0 | point >> 6));
      out.push_back(static_cast<std::byte>(0x80 | (point & 0x3F)));
    }
  }
  return memory_source(source->name(), std::move(out));
}

}  // namespace echelon::data
