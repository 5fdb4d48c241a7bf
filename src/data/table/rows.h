#pragma once
// The rows of a table one after the other, whatever it is written in: cells as text, in the order of the columns. One
// thread at a time.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/table/format.h"

namespace echelon::data {

class TableRows {
 public:
  static constexpr std::size_t most_columns = 1 << 16;
  virtual ~TableRows() = default;
  // False at the end. `cells` holds one cell a column, empty where the row has none; valid until the next call.
  // BadInput naming line and cause for a row that cannot be read; rows with too few or too many cells are all named.
  virtual bool next(std::vector<std::string_view>& cells) = 0;
  virtual std::uint64_t line() const = 0;  // where the last row began, from 1
  // The columns' names: unique, and "0", "1", ... where there is no header. JSON lines may add some with every row.
  const std::vector<std::string>& names() const { return names_; }
  // Names that the header has more than once: the second column "a" is called "a.2".
  const std::vector<std::string>& repeated() const { return repeated_; }

 protected:
  std::vector<std::string> names_, repeated_;
};

// `source` is UTF-8 and must outlive the rows.
std::unique_ptr<TableRows> read_rows(const Source& source, const TableFormat& format);

}  // namespace echelon::data
