#pragma once
// The cells of a table as typed columns in memory: what an encoder is fitted on and encodes. Immutable once read,
// thread-safe.

#include <limits>
#include <memory>

#include "data/table/schema.h"

namespace echelon::data {

struct TableColumn {
  static constexpr std::uint32_t no_word = std::numeric_limits<std::uint32_t>::max();
  std::string name;
  ColumnType type = ColumnType::number;
  // number; boolean: 0 or 1; date: days since 1970-01-01. NaN where the cell is missing.
  std::vector<double> numbers = {};
  bool times = false;  // of dates: some cell names a time
  // category: which of `words`, or no_word where the cell is missing. Words stand in the order of their first cell.
  std::vector<std::uint32_t> codes = {};
  std::vector<std::string> words = {};
};

struct Table {
  std::string file;
  TableFormat format;
  std::string fingerprint;  // of the file's content
  std::uint64_t rows = 0;
  std::vector<TableColumn> columns = {};
  std::uint64_t without_target = 0;  // rows of the file that were left out because a target is missing
  // Where to find a row in the file, for messages.
  std::vector<std::uint32_t> lines = {};
  // Which of the file's rows it is, from 1: other numbers than the lines where cells have several of them.
  std::vector<std::uint32_t> row_numbers = {};

  const TableColumn* find(std::string_view name) const;
};

// A column that somebody wants to have.
struct WantedColumn {
  std::string name;
  ColumnType type = ColumnType::number;
  DateOrder date_order = DateOrder::year_first;
  bool target = false;  // rows without it are left out
  // JSON lines may lack it in every row, as a key that some objects lack is missing there; but a key that looks like a
  // slip of it is refused.
  bool may_lack = false;
};

// Reads the wanted columns of a source in UTF-8, before whose own lines stand `added_lines` that messages do not count.
// BadInput naming line and column for a cell that does not have the column's type, for columns that are not there, and
// for a table that would not fit into memory.
Table read_table(const Source& source, const TableFormat& format, std::span<const WantedColumn> wanted,
                 std::span<const std::string> missing_values, std::uint64_t added_lines = 0);

}  // namespace echelon::data
