#include "data/table/encoder.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "base/listed.h"

namespace echelon::data {

namespace {

std::vector<double> present_numbers(const TableColumn& column, std::span<const std::uint64_t> rows) {
  std::vector<double> numbers;
  numbers.reserve(rows.size());
  for (const std::uint64_t r : rows)
    if (!std::isnan(column.numbers[r])) numbers.push_back(column.numbers[r]);
  return numbers;
}

double mean_of(std::span<const double> numbers) {
  double sum = 0;
  const auto count = static_cast<double>(numbers.size());
  for (const double x : numbers) sum += x;
  if (std::isfinite(sum)) return numbers.empty() ? 0 : sum / count;
  sum = 0;  // numbers near the largest that there are: each is divided by itself
  for (const double x : numbers) sum += x / count;
  return sum;
}

// 1 for what does not vary, so that it can be divided by.
double deviation_of(std::span<const double> numbers, double mean) {
  double sum = 0, unit = 1;
  for (const double x : numbers) sum += (x - mean) * (x - mean);
  if (!std::isfinite(sum)) {  // a square is beyond what there is: they are added in units of the largest difference
    for (const double x : numbers) unit = std::max(unit, std::abs(x - mean));
    sum = 0;
    for (const double x : numbers) sum += ((x - mean) / unit) * ((x - mean) / unit);
  }
  const double deviation = numbers.empty() ? 0 : unit * std::sqrt(sum / static_cast<double>(numbers.size()));
  return deviation > 1e-12 * std::max(1.0, std::abs(mean)) && std::isfinite(deviation) ? deviation : 1;
}

double median_of(std::vector<double> numbers) {
  if (numbers.empty()) return 0;
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::ranges::nth_element(numbers, middle);
  if (numbers.size() % 2 == 1) return *middle;
  return (*std::max_element(numbers.begin(), middle) + *middle) / 2;
}

}  // namespace

std::size_t TableEncoder::Feature::width() const {
  if (embedded) return 0;
  if (type == ColumnType::category) return categories.size() + (missing_category ? 1 : 0);
  const std::size_t value = type == ColumnType::date ? (days ? 1u : 0u) + (parts ? 4u : 0u) + (hours ? 2u : 0u) : 1u;
  return value + (indicator ? 1 : 0);
}

std::int64_t TableEncoder::Feature::ids() const {
  return 1 + static_cast<std::int64_t>(categories.size()) + (missing_category ? 1 : 0);
}

TableEncoder::TableEncoder(const Table& table, std::span<const std::uint64_t> rows, const TableSchema& schema,
                           const TableOptions& options)
    : task_(schema.task),
      class_names_(schema.class_names),
      missing_values_(options.missing_values),
      header_(table.format.json_lines || table.format.header),
      decimal_(table.format.decimal) {
  for (const SchemaColumn& c : schema.columns) {
    columns_.push_back(c.name);
    if (c.role == SchemaColumn::Role::left_out) continue;
    const TableColumn* const column = table.find(c.name);
    invariant(column != nullptr, "a table has the columns of its schema");
    if (c.role == SchemaColumn::Role::target)
      fit_target(*column, rows, options);
    else
      fit_feature(*column, c, rows, options);
  }
}

void TableEncoder::fit_feature(const TableColumn& column, const SchemaColumn& schema,
                               std::span<const std::uint64_t> rows, const TableOptions& options) {
  Feature f{.name = column.name, .type = column.type};
  if (column.type == ColumnType::category) {
    std::vector<std::uint64_t> counts(column.words.size());
    std::uint64_t missing = 0;
    for (const std::uint64_t r : rows) column.codes[r] == TableColumn::no_word ? ++missing : ++counts[column.codes[r]];
    std::map<std::string, std::uint64_t> found;  // sorted, so that the order of rows does not matter
    for (std::size_t w = 0; w < counts.size(); ++w)
      if (counts[w] > 0) found.emplace(column.words[w], counts[w]);
    std::uint64_t most = 0;
    for (const auto& [word, count] : found) {
      if (count > most) most = count, f.most_frequent = static_cast<std::uint32_t>(f.categories.size());
      f.categories.push_back(word);
    }
    f.missing_category = missing > 0 && options.fill_categories == TableOptions::FillCategories::own;
    f.embedded = f.categories.size() > options.one_hot;
  } else {
    const std::vector<double> numbers = present_numbers(column, rows);
    f.mean = mean_of(numbers);
    f.deviation = deviation_of(numbers, f.mean);
    f.fill = options.fill_numbers == TableOptions::FillNumbers::median ? median_of(numbers) : f.mean;
    f.indicator = options.missing_indicator && numbers.size() < rows.size();
    if (!options.standardise) f.mean = 0, f.deviation = 1;
    if (column.type == ColumnType::date) {
      f.date_order = schema.date_order;
      f.days = options.dates != TableOptions::Dates::parts;
      f.parts = options.dates != TableOptions::Dates::days;
      f.hours = f.parts && column.times;
    }
  }
  features_.push_back(std::move(f));
}

void TableEncoder::fit_target(const TableColumn& column, std::span<const std::uint64_t> rows,
                              const TableOptions& options) {
  Target t{.name = column.name, .type = column.type};
  if (task_ == TableTask::regress && options.standardise_target) {
    const std::vector<double> numbers = present_numbers(column, rows);
    t.mean = mean_of(numbers);
    t.deviation = deviation_of(numbers, t.mean);
  }
  targets_.push_back(std::move(t));
}

std::vector<std::int32_t> TableEncoder::classes_of(const TableColumn& column) const {
  std::unordered_map<std::string_view, std::int32_t> by_name;
  std::map<double, std::int32_t> by_number;  // 1.0 is the class 1
  for (std::size_t i = 0; i < class_names_.size(); ++i) {
    by_name.emplace(class_names_[i], static_cast<std::int32_t>(i));
    if (const auto number = cell_number(class_names_[i])) by_number.emplace(*number, static_cast<std::int32_t>(i));
  }
  std::vector<std::int32_t> classes;
  for (const std::string& word : column.words) {
    std::int32_t label = -1;
    if (const auto it = by_name.find(word); it != by_name.end()) {
      label = it->second;
    } else if (const auto number = cell_number(word)) {
      if (const auto near = by_number.find(*number); near != by_number.end()) label = near->second;
    }
    classes.push_back(label);
  }
  return classes;
}

std::size_t TableEncoder::feature_width() const {
  std::size_t width = 0;
  for (const Feature& f : features_) width += f.width();
  return width;
}

std::size_t TableEncoder::embedded_columns() const {
  return static_cast<std::size_t>(std::ranges::count_if(features_, &Feature::embedded));
}

std::vector<Field> TableEncoder::fields(bool with_target) const {
  std::vector<Field> fields;
  if (const auto n = static_cast<std::int64_t>(feature_width()); n > 0)
    fields.push_back({"features", DType::f32, Shape{n}});
  if (const auto k = static_cast<std::int64_t>(embedded_columns()); k > 0) {
    Field ids{"categories", DType::i32, Shape{k}};
    for (const Feature& f : features_)
      if (f.embedded) ids.categories.push_back(f.ids());
    fields.push_back(std::move(ids));
  }
  if (!with_target || targets_.empty()) return fields;
  if (task_ == TableTask::classify)
    fields.push_back({"label", DType::i32, Shape{}});
  else
    fields.push_back(
        {"target", DType::f32, targets_.size() == 1 ? Shape{} : Shape{static_cast<std::int64_t>(targets_.size())}});
  return fields;
}

std::vector<WantedColumn> TableEncoder::wanted(bool with_targets) const {
  std::vector<WantedColumn> wanted;
  for (const Feature& f : features_) wanted.push_back({f.name, f.type, f.date_order, false, !with_targets});
  if (with_targets)
    for (const Target& t : targets_) wanted.push_back({t.name, t.type, DateOrder::year_first, true});
  return wanted;
}

std::vector<std::string> TableEncoder::Remarks::sentences(std::uint64_t rows) const {
  std::vector<std::string> out;
  for (const auto& [column, count] : missing)
    out.push_back(fmt::format("column '{}': {} of {} rows have no value ({:.1f} %)", column, count, rows,
                              100.0 * static_cast<double>(count) / static_cast<double>(rows)));
  for (const auto& [column, words] : unknown) {
    std::uint64_t count = 0;
    std::vector<std::string> names;
    for (const auto& [word, n] : words) count += n, names.push_back(fmt::format("'{}'", word));
    out.push_back(fmt::format("column '{}': {} of {} rows have a category that the training part does not: {}", column,
                              count, rows, listed(names, 5)));
  }
  return out;
}

}  // namespace echelon::data
