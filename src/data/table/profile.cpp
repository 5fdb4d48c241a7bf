#include "data/table/profile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "base/error.h"

namespace echelon::data {

namespace {

constexpr std::array<std::string_view, 5> type_names = {"number", "boolean", "category", "date", "text"};
constexpr std::array orders = {DateOrder::year_first, DateOrder::day_first, DateOrder::month_first};

// Different values that are remembered: of one column of numbers, of one with words, and of all together.
constexpr std::size_t most_numbers = 1 << 10, most_words = 1 << 16, most_values_in_all = 1 << 22, longest_value = 256;

struct HashOfText {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using ValueCounts = std::unordered_map<std::string, std::uint64_t, HashOfText, std::equal_to<>>;

// The first characters, cut where one ends.
std::string_view beginning_of(std::string_view cell) {
  std::size_t end = 40;
  if (cell.size() <= end) return cell;
  while (end > 0 && (static_cast<unsigned char>(cell[end]) & 0xC0u) == 0x80) --end;
  return cell.substr(0, end);
}

void look_at(ColumnProfile& column, std::string_view cell, char decimal, std::uint64_t line) {
  ++column.present;
  const auto no_date = [&] {
    if (column.undated.empty()) column.undated = beginning_of(cell), column.undated_line = line;
  };
  if (const auto number = cell_number(cell, decimal)) {
    const bool first = column.numbers == 0;
    column.rising = column.rising && (first || *number == column.most + 1);
    column.least = first ? *number : std::min(column.least, *number);
    column.most = first ? *number : std::max(column.most, *number);
    column.whole += *number == std::floor(*number) ? 1 : 0;
    ++column.numbers;
    if (std::abs(*number) > std::numeric_limits<float>::max() && column.beyond++ == 0)
      column.beyond_first = beginning_of(cell), column.beyond_line = line;
    no_date();
    return;
  }
  if (column.odd.empty()) column.odd = beginning_of(cell), column.odd_line = line;
  if (cell_boolean(cell)) {
    ++column.booleans;
    no_date();
    return;
  }
  bool date = false;
  for (const DateOrder order : orders)
    if (cell_date(cell, order)) ++column.dates[static_cast<std::size_t>(order)], date = true;
  if (!date) no_date();
}

void remember(ColumnProfile& column, ValueCounts& values, std::string_view cell, std::size_t& in_all) {
  if (column.many) return;
  if (const auto it = values.find(cell); it != values.end()) {
    ++it->second;
    return;
  }
  const std::size_t most = column.numbers == column.present ? most_numbers : most_words;
  if (values.size() >= most || in_all == most_values_in_all || cell.size() > longest_value) {
    column.many = true;
  } else {
    values.emplace(cell, 1);
    ++in_all;
  }
}

}  // namespace

std::string_view name_of(ColumnType type) { return type_names[static_cast<std::size_t>(type)]; }

std::optional<ColumnType> column_type_named(std::string_view name) {
  const auto it = std::ranges::find(type_names, name);
  if (it == type_names.end()) return {};
  return static_cast<ColumnType>(it - type_names.begin());
}

std::vector<std::string> column_type_names() { return {type_names.begin(), type_names.end()}; }

TableProfile profile_table(const Source& source, const TableFormat& format, std::span<const std::string> missing) {
  TableProfile profile{.file = source.name(), .format = format};
  const auto rows = read_rows(source, format);
  std::vector<std::string_view> cells;
  std::vector<ValueCounts> values;  // of each column
  std::size_t remembered = 0;
  const auto name_columns = [&] {
    for (std::size_t i = profile.columns.size(); i < rows->names().size(); ++i)
      profile.columns.push_back({.name = rows->names()[i], .missing = profile.rows});
    values.resize(profile.columns.size());
  };
  name_columns();
  while (rows->next(cells)) {
    name_columns();
    for (std::size_t c = 0; c < cells.size(); ++c) {
      ColumnProfile& column = profile.columns[c];
      if (is_missing_cell(cells[c], missing)) {
        ++column.missing;
        continue;
      }
      look_at(column, cells[c], format.decimal, rows->line());
      remember(column, values[c], cells[c], remembered);
    }
    ++profile.rows;
  }
  profile.repeated = rows->repeated();
  if (profile.rows == 0) bad_input("{}: there is no row below the header", source.name());
  for (std::size_t c = 0; c < values.size(); ++c) profile.columns[c].values.insert(values[c].begin(), values[c].end());
  return profile;
}

ColumnType type_of(const ColumnProfile& c) {
  if (c.present == c.numbers) return ColumnType::number;  // also where there is nothing at all
  if (c.present == c.booleans) return ColumnType::boolean;
  if (std::ranges::any_of(c.dates, [&](std::uint64_t n) { return n == c.present; })) return ColumnType::date;
  // Words of which more than a third of the rows has its own are a text or a name.
  if (c.many || (c.distinct() > 10 && c.distinct() * 3 > c.present)) return ColumnType::text;
  return ColumnType::category;
}

DateOrder date_order_of(const ColumnProfile& c) {
  const auto fits = [&](DateOrder order) { return c.dates[static_cast<std::size_t>(order)] == c.present; };
  if (fits(DateOrder::year_first)) return DateOrder::year_first;
  const bool day = fits(DateOrder::day_first), month = fits(DateOrder::month_first);
  return month ? DateOrder::month_first : day ? DateOrder::day_first : DateOrder::year_first;
}

}  // namespace echelon::data
