#pragma once
// How the rows of a table become the numbers that a network reads, and how its answers become the table's own units
// again. Fitted on the training part alone (medians, means, deviations, categories), and stored with the model: the
// same encoder is used on resuming, for the other parts, and for files that are to be predicted.
//
//   number, boolean   a missing value is filled in; then (x - mean) / deviation; a column of its own says where one was
//                     missing, if the training part had such rows
//   date              days, standardised as a number, and month, weekday and hour as points on a circle
//   category          one feature for each value, 0 or 1; with many values an id in the field "categories" instead, for
//                     an embedding: 0 is any value that the training part does not have
//   target            numbers standardised, each target by itself; classes by number
//
// Fields of a sample: "features" f32[n], "categories" i32[k] (each only if there is such a column), then "label" i32[]
// or "target" f32[m] (f32[] for one). Immutable and thread-safe.

#include "base/json.h"
#include "data/decorators.h"
#include "data/table/table.h"

namespace echelon::data {

class TableEncoder {
 public:
  struct Feature {
    std::string name;
    ColumnType type = ColumnType::number;
    // number, boolean, date
    double fill = 0;  // what stands in for a missing cell
    double mean = 0, deviation = 1;
    bool indicator = false;  // a feature of its own: 1 where the cell was missing
    DateOrder date_order = DateOrder::year_first;
    bool days = true, parts = false, hours = false;  // of a date
    // category
    std::vector<std::string> categories = {};
    bool embedded = false;
    bool missing_category = false;  // a missing cell is one more category, the last
    std::uint32_t most_frequent = 0;

    std::size_t width() const;  // features that it takes; 0 if embedded
    std::int64_t ids() const;   // embedded: 1 for what is unknown, the categories, and the missing one
    bool operator==(const Feature&) const = default;
  };
  struct Target {
    std::string name;
    ColumnType type = ColumnType::number;
    double mean = 0, deviation = 1;  // original = mean + deviation * predicted
    bool operator==(const Target&) const = default;
  };
  // What a table had that the encoder has a rule for: to be told.
  struct Remarks {
    std::map<std::string, std::uint64_t> missing;                         // by column
    std::map<std::string, std::map<std::string, std::uint64_t>> unknown;  // categories, by column, and how often
    std::vector<std::string> sentences(std::uint64_t rows) const;
  };

  // Of the training part: `rows` of the table, which has all columns of the schema that are not left out.
  TableEncoder(const Table& table, std::span<const std::uint64_t> rows, const TableSchema& schema,
               const TableOptions& options);
  explicit TableEncoder(const Json& json, std::string_view where);  // BadInput if it is not what to_json wrote
  Json to_json() const;

  const std::vector<Feature>& features() const { return features_; }
  const std::vector<Target>& targets() const { return targets_; }
  TableTask task() const { return task_; }
  const std::vector<std::string>& class_names() const { return class_names_; }
  std::size_t feature_width() const;     // of "features"
  std::size_t embedded_columns() const;  // of "categories"
  std::vector<Field> fields(bool with_target) const;

  // The columns to ask read_table for.
  std::vector<WantedColumn> wanted(bool with_targets) const;
  // A file to be predicted, as it is: its format is found anew, and its targets are not looked at (but kept if all are
  // there and `with_targets`). Files without a header have the columns of the training file, with or without targets.
  Table read(const SourcePtr& source, bool with_targets, const FormatWishes& wishes = {}) const;
  // One row of cells as somebody types it: its columns are those of such a file. What separates the cells is the
  // character that gives as many as there are columns; a decimal comma needs another one.
  Table read_row(const SourcePtr& row) const;
  // All or some rows as samples. The class or target of every row must be there if `with_targets`.
  DatasetPtr encode(const Table& table, std::span<const std::uint64_t> rows, bool with_targets,
                    Remarks* remarks = nullptr) const;
  DatasetPtr encode(const Table& table, bool with_targets, Remarks* remarks = nullptr) const;

  // A predicted number in the units of its column.
  double original(std::size_t target, double predicted) const {
    return targets_[target].mean + targets_[target].deviation * predicted;
  }

  std::vector<std::string> columns_read() const;  // those that are features

 private:
  void fit_feature(const TableColumn& column, const SchemaColumn& schema, std::span<const std::uint64_t> rows,
                   const TableOptions& options);
  void fit_target(const TableColumn& column, std::span<const std::uint64_t> rows, const TableOptions& options);
  std::vector<std::int32_t> classes_of(const TableColumn& column) const;  // of each word; -1: none

  std::vector<Feature> features_;
  std::vector<Target> targets_;
  TableTask task_ = TableTask::none;
  std::vector<std::string> class_names_;
  std::vector<std::string> columns_;         // of the training file, in its order
  std::vector<std::string> missing_values_;  // words that stand for nothing, besides the usual ones
  bool header_ = true;                       // whether the training file had one
  char decimal_ = '.';                       // of the training file
};

}  // namespace echelon::data
