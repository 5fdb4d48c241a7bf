#include "data/table/table.h"

#include <fmt/ranges.h>

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
  ColumnReader(const WantedColumn& wanted, char decimal, std::vector<std::string>& problems)
      : wanted_(wanted), decimal_(decimal), problems_(problems) {
    column_.name = wanted.name;
    column_.type = wanted.type;
  }

  bool target() const { return wanted_.target; }

  void add(std::string_view cell, bool missing, std::uint64_t line) {
    if (wanted_.type == ColumnType::category) {
      column_.codes.push_back(missing ? TableColumn::no_word : code_of(cell));
      return;
    }
    column_.numbers.push_back(missing ? nothing : value_of(cell, line));
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

  double value_of(std::string_view cell, std::uint64_t line) {
    if (wanted_.type == ColumnType::boolean) {
      if (const auto b = cell_boolean(cell)) return *b ? 1 : 0;
      const auto n = cell_number(cell, decimal_);
      if (n && (*n == 0 || *n == 1)) return *n;
      return refuse(cell, line, "true, false, yes, no, 1 or 0");
    }
    if (wanted_.type == ColumnType::date) {
      auto date = cell_date(cell, wanted_.date_order);
      if (!date) date = cell_date(cell, DateOrder::year_first);  // which cannot be taken for another
      if (!date) return refuse(cell, line, fmt::format("a date, {}", name_of(wanted_.date_order)));
      column_.times = column_.times || date->has_time;
      return date->days;
    }
    const auto number = cell_number(cell, decimal_);
    if (number) return *number;
    // A column of 0 and 1 may say it in words elsewhere.
    if (const auto b = cell_boolean(cell)) return *b ? 1 : 0;
    return refuse(cell, line, "a number");
  }

  double refuse(std::string_view cell, std::uint64_t line, std::string_view expected) const {
    problems_.push_back(
        fmt::format("line {}, column '{}': expected {}, found '{:.40}'", line, wanted_.name, expected, cell));
    return nothing;
  }

  const WantedColumn& wanted_;
  char decimal_;
  std::vector<std::string>& problems_;  // cells that do not have the column's type
  TableColumn column_;
  std::unordered_map<std::string, std::uint32_t> codes_;
};

// One message with the cells that were found wrong until now, one a line.
[[noreturn]] void refuse_cells(const Source& source, const std::vector<std::string>& problems, bool all) {
  const std::string between = fmt::format("\n{}: ", source.name());
  bad_input("{}: {}{}", source.name(), fmt::join(problems, between),
            all ? "" : "\nand perhaps more: reading ended here");
}

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
                 std::span<const std::string> missing_values, std::uint64_t added_lines) {
  const auto rows = read_rows(source, format);
  check_table_memory(source, wanted.size());
  Table table{.file = source.name(), .format = format, .fingerprint = fingerprint_of(source)};
  std::vector<ColumnReader> readers;
  std::vector<std::string> problems;
  constexpr std::size_t most_problems = 20;
  for (const WantedColumn& w : wanted) readers.emplace_back(w, format.decimal, problems);
  constexpr std::size_t absent = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> places(wanted.size(), absent);  // of the wanted columns in a row
  std::size_t known = 0;                                   // names that were looked at
  const auto find_places = [&] {
    for (; known < rows->names().size(); ++known)
      for (std::size_t w = 0; w < wanted.size(); ++w)
        if (wanted[w].name == rows->names()[known]) places[w] = known;
  };
  const auto check_places = [&] {
    std::vector<std::string> lacking, others = rows->names();
    std::erase_if(others, [&](const std::string& name) {
      return std::ranges::find(wanted, name, &WantedColumn::name) != wanted.end();
    });
    const bool all = std::ranges::all_of(places, [](std::size_t place) { return place == absent; });
    std::string guesses;
    for (std::size_t w = 0; w < wanted.size(); ++w) {
      if (places[w] != absent) continue;
      const std::string guess = did_you_mean(wanted[w].name, others);
      if (format.json_lines && wanted[w].may_lack && guess.empty() && !all) continue;
      lacking.push_back(wanted[w].name);
      if (!guess.empty()) guesses += fmt::format("{} for '{}'", guess.substr(0, guess.size() - 1), wanted[w].name);
    }
    if (!lacking.empty())
      bad_input("{}: there {} {}; it has: {}{}", source.name(), lacking.size() == 1 ? "is no column" : "are no columns",
                listed(lacking), listed(rows->names()), guesses.empty() ? "" : guesses + "?");
  };
  find_places();
  if (!format.json_lines) check_places();
  std::vector<std::string_view> cells;
  std::vector<char> missing(wanted.size());
  for (std::uint32_t number = 1; rows->next(cells); ++number) {
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
      readers[w].add(missing[w] ? std::string_view() : cells[places[w]], missing[w], rows->line() - added_lines);
    if (problems.size() >= most_problems) refuse_cells(source, problems, false);
    table.lines.push_back(static_cast<std::uint32_t>(rows->line() - added_lines));
    table.row_numbers.push_back(number);
    ++table.rows;
  }
  check_places();
  if (!problems.empty()) refuse_cells(source, problems, true);
  if (table.rows == 0)
    bad_input("{}: there is no row{}", source.name(),
              table.without_target > 0 ? fmt::format(" with a target ({} without)", table.without_target) : "");
  for (ColumnReader& reader : readers) table.columns.push_back(reader.take());
  return table;
}

}  // namespace echelon::data
