#pragma once
// What the columns of a table hold, found by one walk over its rows: how many cells are numbers, truth values, dates or
// missing, and which different values there are. From it the type of every column follows. Pure and thread-safe.

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "data/table/rows.h"
#include "data/table/value.h"

namespace echelon::data {

enum class ColumnType : std::uint8_t { number, boolean, category, date, text };
std::string_view name_of(ColumnType type);
std::optional<ColumnType> column_type_named(std::string_view name);
std::vector<std::string> column_type_names();

struct ColumnProfile {
  std::string name;
  std::uint64_t present = 0, missing = 0;  // cells
  std::uint64_t numbers = 0, whole = 0, booleans = 0;
  std::array<std::uint64_t, 3> dates{};  // by DateOrder: cells that are dates in that order
  double least = 0, most = 0;            // of the numbers
  bool rising = true;                    // each number is the one before it plus 1
  // The different cells and how often each occurs; complete unless `many`.
  std::map<std::string, std::uint64_t, std::less<>> values = {};
  bool many = false;
  std::string odd = {};  // the first cell that is not a number, and its line
  std::uint64_t odd_line = 0;
  std::uint64_t beyond = 0;       // numbers that a float cannot hold
  std::string beyond_first = {};  // and the first of them, and its line
  std::uint64_t beyond_line = 0;
  std::string undated = {};  // the first cell that is not a date in any order, and its line
  std::uint64_t undated_line = 0;

  std::uint64_t most_dates() const { return std::ranges::max(dates); }  // in the order that fits most cells
  std::uint64_t rows() const { return present + missing; }
  std::uint64_t distinct() const { return values.size(); }  // at least so many if `many`
};

struct TableProfile {
  std::string file;
  TableFormat format;
  std::uint64_t rows = 0;
  std::vector<ColumnProfile> columns = {};
  std::vector<std::string> repeated = {};  // names of several columns
};

// `source` is UTF-8. `missing`: words that stand for a missing value besides the usual ones.
TableProfile profile_table(const Source& source, const TableFormat& format, std::span<const std::string> missing = {});

// The type that the cells suggest.
ColumnType type_of(const ColumnProfile& column);
// The order in which the dates of a column are written. Where both day and month may come first: the month.
DateOrder date_order_of(const ColumnProfile& column);

}  // namespace echelon::data
