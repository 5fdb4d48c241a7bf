#pragma once
// Which columns of a table are what: features of a type, targets, or left out with a reason; and what is to be learnt
// of the targets. Decided from the profile of the training file and from what a recipe says. Pure and thread-safe.

#include <map>
#include <string>
#include <vector>

#include "data/table/profile.h"

namespace echelon::data {

enum class TableTask : std::uint8_t { none, classify, regress, multi_label };
std::string_view name_of(TableTask task);

// A recipe's wishes; everything left empty is found.
struct TableOptions {
  FormatWishes format;
  std::vector<std::string> labels;  // columns to predict; empty: label, class, target or y, else the last
  std::optional<TableTask> task;
  std::vector<std::string> ignore;
  std::string time;  // the rows are put in the order of this column; empty: they stay as they are
  std::map<std::string, ColumnType> types;
  std::vector<std::string> class_names;  // the classes in order; empty: those found, sorted
  std::vector<std::string> missing_values;

  enum class FillNumbers : std::uint8_t { median, mean } fill_numbers = FillNumbers::median;
  enum class FillCategories : std::uint8_t { own, most_frequent } fill_categories = FillCategories::own;
  bool missing_indicator = true;
  enum class Dates : std::uint8_t { both, days, parts } dates = Dates::both;
  std::size_t one_hot = 16;  // categories of a column that become features; with more it is embedded
  bool standardise = true, standardise_target = true;
};

struct SchemaColumn {
  std::string name;
  enum class Role : std::uint8_t { feature, target, left_out } role = Role::feature;
  ColumnType type = ColumnType::number;
  DateOrder date_order = DateOrder::year_first;
  std::string reason = {};  // why it is left out
};

struct TableSchema {
  std::vector<SchemaColumn> columns = {};  // of the file, in its order
  TableTask task = TableTask::none;
  std::vector<std::string> class_names = {};  // classify: in class order
  std::vector<std::string> notes = {};        // what was decided, one sentence each

  std::vector<std::size_t> with(SchemaColumn::Role role) const;
};

// BadInput with every problem at once: columns that are not there (with the nearest name), labels that cannot be
// learnt, no feature left.
TableSchema make_schema(const TableProfile& profile, const TableOptions& options);

}  // namespace echelon::data
