#pragma once
// Tables of numbers in text: one row a sample, one column the label. Fields may be quoted (RFC 4180: "" inside quotes
// is a quote, newlines are allowed there); lines end with LF or CRLF; blank lines are skipped. Everything is parsed
// when the file is opened, so a wrong cell is found before training starts, and named by line and column.

#include "data/array.h"

namespace echelon::data {

struct CsvOptions {
  char delimiter = ',';
  enum class Header { automatic, yes, no } header = Header::automatic;  // automatic: yes if row 1 has no number in it
  // A column's name, or its number from 0 on (negative: from the end). Empty: a column called label, class or target,
  // else the last one.
  std::string label;
  std::vector<std::string> ignore;  // columns that are left out, by name or number
  // automatic: classes if the labels are words or whole numbers from 0 to 999; else a number to be predicted.
  enum class Task { automatic, classify, regress, none } task = Task::automatic;
  std::vector<std::string> class_names;  // the classes in order, if the labels are words; empty: those found, sorted
  std::int64_t classes = 0;              // how many; 0: as many as are found
};

std::shared_ptr<const Dataset> read_csv(const SourcePtr& source, const CsvOptions& options);

// `path` is a file, or a directory with train.csv and test.csv: then train.csv says what the classes are.
std::shared_ptr<const Dataset> open_csv(Disk& disk, const std::string& path, const std::string& split,
                                        const CsvOptions& options);

// One row after the other of delimited text; also used on its own.
class CsvRows {
 public:
  struct Cell {
    std::string_view text;  // without the quotes; valid until the next row
    std::uint64_t offset;   // in the source
  };
  static constexpr std::size_t most_cells = 1 << 20, most_cell_bytes = 1 << 20;
  CsvRows(const Source& source, char delimiter);    // BadInput if the source is too large to lie in memory
  bool next(std::vector<Cell>& row);                // false at the end
  std::uint64_t line() const { return row_line_; }  // where the row began, from 1

 private:
  Cell quoted_cell();
  void take(std::vector<Cell>& row, Cell cell) const;  // BadInput if the cell or the row is longer than any honest one

  const Source& source_;
  std::string_view text_;
  char delimiter_;
  std::size_t at_ = 0;
  std::uint64_t line_ = 1, row_line_ = 0;
  std::vector<std::unique_ptr<std::string>> unquoted_;  // cells in which "" became "
};

}  // namespace echelon::data
