#include "data/table/table.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "base/listed.h"
#include "base/text.h"
#include "world/os/host.h"

namespace echelon::data {

namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

// Cells of one column as they are read.
class ColumnReader {
 public:
  ColumnReader(const WantedColumn& wanted, char decimal) : wanted_(wanted), decimal_(decimal) {
    column_.name = wanted.name;
    column_.type = wanted.type;
  }

  bool target() const { return wanted_.target; }

  void add(std::string_view cell, bool missing, const Source& source, std::uint64_t line) {
    if (wanted_.type == ColumnType::category) {
      column_.codes.push_back(missing ? TableColumn::no_word : code_of(cell));
      return;
    }
    column_.numbers.push_back(missing ? nothing : value_of(cell, source, line));
  }

  TableColumn take() { return std::move(column_); }

 private:
  std::uint32_t code_of(std::string_view cell) {
    const auto it = codes_.find(std::string(cell));
    if (it != codes_.end()) return it->second;
    const auto code = static_cast<std::uint32_t>(column_.words.size());
    column_.words.emplace_back(cell);
    codes_.emplace(column_.words.back(), code);
    return code;
  }

  double value_of(std::string_view cell, const Source& source, std::uint64_t line) {
    if (wanted_.type == ColumnType::boolean) {
      if (const auto b = cell_boolean(cell)) return *b ? 1 : 0;
      const auto n = cell_number(cell, decimal_);
      if (n && (*n == 0 || *n == 1)) return *n;
      refuse(cell, source, line, "true, false, yes, no, 1 or 0");
    }
    if (wanted_.type == ColumnType::date) {
      const auto date = cell_date(cell, wanted_.date_order);
      if (!date) refuse(cell, source, line, fmt::format("a date, {}", name_of(wanted_.date_order)));
      column_.times = column_.times || date->has_time;
      return date->days;
    }
    const auto number = cell_number(cell, decimal_);
    if (number) return *number;
    // A column of 0 and 1 may say it in words elsewhere.
    if (const auto b = cell_boolean(cell)) return *b ? 1 : 0;
    refuse(cell, source, line, "a number");
  }

  [[noreturn]] void refuse(std::string_view cell, const Source& source, std::uint64_t line,
                           std::string_view expected) const {
    bad_input("{}: line {}, column '{}': expected {}, found '{:.40}'", source.name(), line, wanted_.name, expected,
              cell);
  }

  const WantedColumn& wanted_;
  char decimal_;
  TableColumn column_;
  std::unordered_map<std::string, std::uint32_t> codes_;
};

// Refuses what cannot fit before it is read: there are at most as many rows as lines.
void check_table_memory(const Source& source, std::size_t wanted) {
  const std::byte* const bytes = source.at(0, source.size());
  invariant(bytes != nullptr, "a table lies in memory");
  const auto lines =
      static_cast<std::uint64_t>(std::count(bytes, bytes + source.size(), static_cast<std::byte>('\n'))) + 1;
  const std::uint64_t needed = checked_product(lines, 8 * wanted + 4, source, 0);
  if (needed > usable_memory_bytes() / 2)
    bad_input(
        "{}: {} rows of {} columns may need {} of memory, and this machine has {}: leave out columns with "
        "data.ignore, or convert it to NPY",
        source.name(), lines, wanted, human_bytes(static_cast<double>(needed)),
        human_bytes(static_cast<double>(usable_memory_bytes())));
}

}  // namespace

const TableColumn* Table::find(std::string_view name) const {
  const auto it = std::ranges::find(columns, name, &TableColumn::name);
  return it == columns.end() ? nullptr : &*it;
}

Table read_table(const Source& source, const TableFormat& format, std::span<const WantedColumn> wanted,
                 std::span<const std::string> missing_values) {
  const auto rows = read_rows(source, format);
  check_table_memory(source, wanted.size());
  Table table{.file = source.name(), .format = format, .fingerprint = fingerprint_of(source)};
  std::vector<ColumnReader> readers;
  for (const WantedColumn& w : wanted) readers.emplace_back(w, format.decimal);
  constexpr std::size_t absent = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> places(wanted.size(), absent);  // of the wanted columns in a row
  std::size_t known = 0;                                   // names that were looked at
  const auto find_places = [&] {
    for (; known < rows->names().size(); ++known)
      for (std::size_t w = 0; w < wanted.size(); ++w)
        if (wanted[w].name == rows->names()[known]) places[w] = known;
  };
  const auto check_places = [&] {
    std::vector<std::string> lacking;
    for (std::size_t w = 0; w < wanted.size(); ++w)
      if (places[w] == absent) lacking.push_back(wanted[w].name);
    if (!lacking.empty())
      bad_input("{}: there is no column {}; it has: {}", source.name(), listed(lacking), listed(rows->names()));
  };
  find_places();
  if (!format.json_lines) check_places();
  std::vector<std::string_view> cells;
  std::vector<char> missing(wanted.size());
  while (rows->next(cells)) {
    find_places();
    bool complete = true;
    for (std::size_t w = 0; w < wanted.size(); ++w) {
      missing[w] = places[w] == absent || is_missing_cell(cells[places[w]], missing_values);
      complete = complete && !(missing[w] && wanted[w].target);
    }
    if (!complete) {
      ++table.without_target;
      continue;
    }
    for (std::size_t w = 0; w < wanted.size(); ++w)
      readers[w].add(missing[w] ? std::string_view() : cells[places[w]], missing[w], source, rows->line());
    table.lines.push_back(static_cast<std::uint32_t>(rows->line()));
    ++table.rows;
  }
  check_places();
  if (table.rows == 0)
    bad_input("{}: there is no row{}", source.name(),
              table.without_target > 0 ? fmt::format(" with a target ({} without)", table.without_target) : "");
  for (ColumnReader& reader : readers) table.columns.push_back(reader.take());
  return table;
}

}  // namespace echelon::data
