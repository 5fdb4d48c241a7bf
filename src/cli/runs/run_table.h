#pragma once
// Tables of words for a terminal, and the cells that `runs` and `compare` fill them with.

#include <initializer_list>
#include <string>
#include <vector>

#include "base/json.h"
#include "world/os/disk.h"

namespace echelon::cli {

// Columns as wide as their widest cell; the first is on the left, numbers on the right.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> names) : rows_{std::move(names)} {}
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text() const;
  // The same in at most `columns`, if that is done by leaving out some of the columns named `spare`, the first one
  // first. A line below then names them.
  std::string text(int columns, std::initializer_list<const char*> spare) const;
  int width() const;
  TextTable transposed() const;  // rows become columns
  void drop_empty_columns();     // in which every cell is "-"

 private:
  std::vector<int> widths() const;
  void drop(std::size_t column);

  std::vector<std::vector<std::string>> rows_;
};

// A number of a run's summary, or "-".
std::string summary_cell(const Json& summary, const char* key, const char* format);

std::string brief(const std::string& value);                // cut to what a column has room for
std::string joined(const std::vector<std::string>& words);  // "a, b and c"

// A file that the user has named: what keeps it from being written is theirs to cure (BadInput).
void write_named_file(Disk& disk, const std::string& path, std::string_view text);
void write_named_file(Disk& disk, const std::string& path, std::span<const std::byte> bytes);

}  // namespace echelon::cli
