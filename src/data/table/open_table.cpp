#include "data/table/open_table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "base/listed.h"
#include "data/files/fingerprint.h"
#include "data/table/describe.h"

namespace echelon::data {

namespace {

std::vector<WantedColumn> wanted_by(const TableSchema& schema) {
  std::vector<WantedColumn> wanted;
  for (const SchemaColumn& c : schema.columns)
    if (c.role != SchemaColumn::Role::left_out)
      wanted.push_back({c.name, c.type, c.date_order, c.role == SchemaColumn::Role::target});
  return wanted;
}

// Puts the rows in the order of the column `time`; of equals the first stays the first.
void sort_by_time(Table& table, const Source& source, const TableOptions& options, std::vector<WantedColumn> wanted) {
  const TableProfile profile = profile_table(source, table.format, options.missing_values);
  const auto column = std::ranges::find(profile.columns, options.time, &ColumnProfile::name);
  if (column == profile.columns.end()) bad_input("{}: there is no column '{}' (data.time)", table.file, options.time);
  std::erase_if(wanted, [&](const WantedColumn& w) { return !w.target || w.name == options.time; });
  wanted.push_back({options.time, type_of(*column), date_order_of(*column), false});
  const Table times = read_table(source, table.format, wanted, options.missing_values);
  const std::vector<double>& when = times.find(options.time)->numbers;
  if (when.size() != table.rows) bad_input("{}: column '{}' has no times (data.time)", table.file, options.time);
  std::vector<std::uint64_t> order(table.rows);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::uint64_t row) { return when[row]; });
  const auto put_in_order = [&](auto& values) {
    if (values.empty()) return;
    auto sorted = values;
    for (std::size_t i = 0; i < order.size(); ++i) sorted[i] = values[order[i]];
    values = std::move(sorted);
  };
  for (TableColumn& c : table.columns) put_in_order(c.numbers), put_in_order(c.codes);
  put_in_order(table.lines), put_in_order(table.row_numbers);
  table.fingerprint = Fingerprint().add(table.fingerprint).add("in the order of " + options.time).hex();
}

// Rows of a table by number, with what is to be predicted.
class RowsOfTable : public Dataset {
 public:
  explicit RowsOfTable(TableFilePtr file) : Dataset(info_of(*file)), file_(std::move(file)) {
    info().table_rows = file_;
    for (const std::size_t c : file_->schema.with(SchemaColumn::Role::target))
      targets_.push_back(file_->table.find(file_->schema.columns[c].name));
    if (file_->schema.task != TableTask::classify) return;
    for (const std::string& word : targets_[0]->words) {
      const auto& names = file_->schema.class_names;
      classes_.push_back(static_cast<std::int32_t>(std::ranges::find(names, word) - names.begin()));
    }
  }

  void get(std::uint64_t index, const SampleContext&, SampleRef out) const override {
    *reinterpret_cast<std::int32_t*>(out[0]) = static_cast<std::int32_t>(index);
    if (!classes_.empty())
      *reinterpret_cast<std::int32_t*>(out[1]) = classes_[targets_[0]->codes[index]];
    else
      for (std::size_t t = 0; t < targets_.size(); ++t)
        reinterpret_cast<float*>(out[1])[t] = static_cast<float>(targets_[t]->numbers[index]);
  }

 private:
  static DatasetInfo info_of(const TableFile& file) {
    DatasetInfo info;
    info.size = file.table.rows;
    info.fields = {{"row", DType::i32, Shape{}}};
    const auto targets = static_cast<std::int64_t>(file.schema.with(SchemaColumn::Role::target).size());
    if (file.schema.task == TableTask::classify)
      info.fields.push_back({"label", DType::i32, Shape{}});
    else if (targets > 0)
      info.fields.push_back({"target", DType::f32, targets == 1 ? Shape{} : Shape{targets}});
    info.classes = static_cast<std::int64_t>(file.schema.class_names.size());
    info.class_names = file.schema.class_names;
    info.fingerprint = file.table.fingerprint;
    return info;
  }

  TableFilePtr file_;
  std::vector<const TableColumn*> targets_;
  std::vector<std::int32_t> classes_;  // of the words of the target
};

std::vector<std::uint64_t> rows_in(const Dataset& part) {
  std::vector<std::uint64_t> rows(part.size());
  for (std::uint64_t i = 0; i < rows.size(); ++i) rows[i] = part.origin(i, {});
  return rows;
}

std::string count_of(const std::string& column, std::uint64_t missing, std::uint64_t rows, const std::string& how) {
  return fmt::format("'{}' {} of {} ({:.1f} %), {}", column, missing, rows,
                     100.0 * static_cast<double>(missing) / static_cast<double>(rows), how);
}

std::string filled_how(const TableEncoder::Feature& f, const TableOptions& o) {
  if (f.type == ColumnType::category)
    return f.missing_category     ? "a category of its own"
           : f.categories.empty() ? "no category"
                                  : fmt::format("filled with '{}'", f.categories[f.most_frequent]);
  const bool median = o.fill_numbers == TableOptions::FillNumbers::median;
  std::string value = fmt::format("{:.6g}", f.fill);
  if (f.type == ColumnType::date) value = date_text(f.fill);
  return fmt::format("filled with the {} {}{}", median ? "median" : "mean", value,
                     f.indicator ? " and marked in a feature of its own" : "");
}

std::vector<std::string> notes_on_training(const TableFile& file, const TableEncoder& encoder,
                                           const TableEncoder::Remarks& remarks, std::uint64_t rows) {
  std::vector<std::string> notes;
  notes.push_back(fmt::format("{}: {}", file.table.file, to_string(file.table.format)));
  std::vector<std::string> left_out, missing, embedded;
  for (const SchemaColumn& c : file.schema.columns)
    if (c.role == SchemaColumn::Role::left_out) left_out.push_back(fmt::format("'{}' ({})", c.name, c.reason));
  for (const TableEncoder::Feature& f : encoder.features()) {
    if (const auto it = remarks.missing.find(f.name); it != remarks.missing.end())
      missing.push_back(count_of(f.name, it->second, rows, filled_how(f, file.options)));
    if (f.embedded) embedded.push_back(fmt::format("'{}' ({} values)", f.name, f.categories.size()));
  }
  if (!left_out.empty()) notes.push_back(fmt::format("columns left out: {}", fmt::join(left_out, ", ")));
  if (!missing.empty()) notes.push_back(fmt::format("missing in the training part: {}", fmt::join(missing, "; ")));
  if (!embedded.empty())
    notes.push_back(fmt::format("columns that are embedded, having more than data.one_hot = {} categories: {}",
                                file.options.one_hot, fmt::join(embedded, ", ")));
  notes.insert(notes.end(), file.schema.notes.begin(), file.schema.notes.end());
  return notes;
}

// BadInput if the table has a class that the schema does not; `who` has it from.
void expect_classes(const Table& table, const TableSchema& schema, const std::string& who) {
  if (schema.task != TableTask::classify) return;
  const std::string& target = schema.columns[schema.with(SchemaColumn::Role::target).front()].name;
  std::vector<std::string> unknown;
  for (const std::string& word : table.find(target)->words)
    if (std::ranges::find(schema.class_names, word) == schema.class_names.end()) unknown.push_back(word);
  if (!unknown.empty())
    bad_input("{}: column '{}' has classes that {} does not: {}", table.file, target, who, listed(unknown));
}

// The encoded samples, with the rows that they were.
class EncodedPart : public Dataset {
 public:
  EncodedPart(DatasetInfo info, DatasetPtr encoded, std::vector<std::uint64_t> rows)
      : Dataset(std::move(info)), encoded_(std::move(encoded)), rows_(std::move(rows)) {}
  void get(std::uint64_t index, const SampleContext& context, SampleRef out) const override {
    encoded_->get(index, context, out);
  }
  std::uint64_t origin(std::uint64_t index, const SampleContext&) const override { return rows_[index]; }

 private:
  DatasetPtr encoded_;
  std::vector<std::uint64_t> rows_;
};

}  // namespace

TableFilePtr read_table_file(const SourcePtr& given, const TableOptions& options) {
  const TableFormat format = find_format(given, options.format);
  const SourcePtr source = as_utf8(given, format);
  const TableProfile profile = profile_table(*source, format, options.missing_values);
  TableSchema schema = make_schema(profile, options);
  const auto wanted = wanted_by(schema);
  Table table = read_table(*source, format, wanted, options.missing_values);
  if (!options.time.empty()) sort_by_time(table, *source, options, wanted);
  return std::make_shared<TableFile>(TableFile{options, std::move(schema), std::move(table)});
}

TableFilePtr read_table_file(const SourcePtr& given, const TableOptions& options,
                             std::shared_ptr<const TableEncoder> encoder) {
  TableSchema schema{.task = encoder->task(), .class_names = encoder->class_names()};
  for (const WantedColumn& w : encoder->wanted(true))
    schema.columns.push_back({.name = w.name,
                              .role = w.target ? SchemaColumn::Role::target : SchemaColumn::Role::feature,
                              .type = w.type,
                              .date_order = w.date_order});
  Table table = encoder->read(given, true, options.format);
  if (!options.time.empty()) sort_by_time(table, *as_utf8(given, table.format), options, encoder->wanted(true));
  expect_classes(table, schema, "the encoder");
  return std::make_shared<TableFile>(TableFile{options, std::move(schema), std::move(table), std::move(encoder)});
}

TableFilePtr read_table_file_like(const SourcePtr& given, const TableFilePtr& train) {
  FormatWishes wishes = train->options.format;
  if (!wishes.header && !train->table.format.json_lines) wishes.header = train->table.format.header;
  const TableFormat format = find_format(given, wishes);
  const SourcePtr source = as_utf8(given, format);
  const auto wanted = wanted_by(train->schema);
  Table table = read_table(*source, format, wanted, train->options.missing_values);
  expect_classes(table, train->schema, train->table.file);
  return std::make_shared<TableFile>(TableFile{train->options, train->schema, std::move(table), train->encoder});
}

DatasetPtr rows_of_table(TableFilePtr file) { return std::make_shared<RowsOfTable>(std::move(file)); }

DatasetPtr encode_rows(const Dataset& train, const Dataset& part, const std::string& name) {
  const TableFilePtr file = train.info().table_rows, other = part.info().table_rows;
  invariant(file && other, "rows of tables are encoded");
  const auto fitted_on = rows_in(train);
  auto encoder = file->encoder;
  if (!encoder) encoder = std::make_shared<TableEncoder>(file->table, fitted_on, file->schema, file->options);
  const bool training = &train == &part;
  auto rows = training ? fitted_on : rows_in(part);
  TableEncoder::Remarks remarks;
  const DatasetPtr encoded = encoder->encode(other->table, rows, encoder->task() != TableTask::none, &remarks);
  DatasetInfo info = encoded->info();
  info.table = encoder;
  info.table_file = other;
  info.fingerprint = Fingerprint().add(part.info().fingerprint).add(encoder->to_json().dump()).hex();
  if (training && !file->encoder) {
    info.notes = notes_on_training(*file, *encoder, remarks, rows.size());
  } else {
    if (training) info.notes.push_back(fmt::format("{}: {}", file->table.file, to_string(file->table.format)));
    for (const std::string& sentence : remarks.sentences(rows.size()))
      info.notes.push_back(training ? sentence : fmt::format("{} part: {}", name, sentence));
  }
  if ((training || other != file) && other->table.without_target > 0)
    info.notes.push_back(fmt::format("{}: {} rows without a value to predict are left out", other->table.file,
                                     other->table.without_target));
  return std::make_shared<EncodedPart>(std::move(info), encoded, std::move(rows));
}

}  // namespace echelon::data
