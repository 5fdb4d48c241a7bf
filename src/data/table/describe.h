#pragma once
// What is in a table, for people: every column with its type, range, missing cells and a small histogram. Behind
// `echelon data info FILE`.

#include "data/table/table.h"

namespace echelon::data {

struct ColumnSummary {
  std::string name;
  ColumnType type = ColumnType::number;
  SchemaColumn::Role role = SchemaColumn::Role::feature;  // as `echelon init` would take it
  std::string reason = {};                                // why it would be left out
  std::uint64_t rows = 0, missing = 0;
  std::uint64_t distinct = 0;
  bool many = false;  // there are more than `distinct`
  // number, boolean, date (in days since 1970-01-01), where a cell is present
  double least = 0, most = 0, mean = 0, deviation = 0, median = 0;
  // Numbers: how many lie in each of as many equal parts of the range. Categories: how often the first of `top` occur.
  std::vector<std::uint64_t> histogram = {};
  std::vector<std::pair<std::string, std::uint64_t>> top = {};  // categories and texts: the most frequent first

  bool has_range() const { return type != ColumnType::category && type != ColumnType::text && missing < rows; }
};

struct TableSummary {
  std::string file;
  TableFormat format;
  std::uint64_t rows = 0;
  TableTask task = TableTask::none;  // as `echelon init` would take it
  std::vector<ColumnSummary> columns = {};
  std::vector<std::string> notes = {};
};

// BadInput for what is no table.
TableSummary describe_table(const SourcePtr& source, const TableOptions& options = {});

// "2024-03-17"
std::string date_text(double days);

// Bars of eight heights in UTF-8, one for each count: "▂▅█▃▁"; a blank for none.
std::string bars(std::span<const std::uint64_t> counts);

}  // namespace echelon::data
