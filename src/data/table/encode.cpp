// Rows of a table, encoded into arrays that the samples are copied from.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <unordered_map>

#include "base/error.h"
#include "base/listed.h"
#include "base/text.h"
#include "data/fingerprint.h"
#include "data/formats/csv.h"
#include "data/table/encoder.h"
#include "world/os/host.h"

namespace echelon::data {

namespace {

struct EncodedArrays {
  std::vector<float> features = {};
  std::vector<std::int32_t> ids = {}, labels = {};
  std::vector<float> targets = {};
  std::size_t width = 0, id_width = 0, target_width = 0;
};

class EncodedTable : public Dataset {
 public:
  EncodedTable(DatasetInfo info, EncodedArrays arrays) : Dataset(std::move(info)), a_(std::move(arrays)) {}

  void get(std::uint64_t index, const SampleContext&, SampleRef out) const override {
    std::size_t field = 0;
    const auto copy = [&](const auto& values, std::size_t width) {
      if (values.empty()) return;
      std::memcpy(out[field++], values.data() + index * width, width * sizeof(values[0]));
    };
    copy(a_.features, a_.width);
    copy(a_.ids, a_.id_width);
    copy(a_.labels, 1);
    copy(a_.targets, a_.target_width);
  }

 private:
  EncodedArrays a_;
};

void write_number(const TableEncoder::Feature& f, double value, float* out) {
  const bool missing = std::isnan(value);
  const double x = missing ? f.fill : value;
  const bool date = f.type == ColumnType::date;
  if (!date || f.days) *out++ = static_cast<float>((x - f.mean) / f.deviation);
  const auto circle = [&](double phase) {
    const CirclePoint p = on_circle(phase);
    *out++ = static_cast<float>(p.sine);
    *out++ = static_cast<float>(p.cosine);
  };
  if (date && (f.parts || f.hours)) {
    const DateParts p = parts_of_date(x);
    if (f.parts) circle(p.day_of_year / 365.25), circle(p.weekday / 7.0);
    if (f.hours) circle(p.time);
  }
  if (f.indicator) *out++ = missing ? 1.0f : 0.0f;
}

// What each word of a column is: its place among the categories, or -1.
std::vector<std::int64_t> places_of_words(const TableColumn& column, const TableEncoder::Feature& f) {
  std::vector<std::int64_t> places;
  for (const std::string& word : column.words) {
    const auto it = std::ranges::lower_bound(f.categories, word);
    places.push_back(it != f.categories.end() && *it == word ? it - f.categories.begin() : -1);
  }
  return places;
}

}  // namespace

DatasetPtr TableEncoder::encode(const Table& table, bool with_targets, Remarks* remarks) const {
  std::vector<std::uint64_t> rows(table.rows);
  std::iota(rows.begin(), rows.end(), 0);
  return encode(table, rows, with_targets, remarks);
}

DatasetPtr TableEncoder::encode(const Table& table, std::span<const std::uint64_t> rows, bool with_targets,
                                Remarks* remarks) const {
  EncodedArrays a{.width = feature_width(), .id_width = embedded_columns(), .target_width = targets_.size()};
  const double bytes =
      static_cast<double>(rows.size()) * static_cast<double>(a.width + a.id_width + a.target_width) * 4;
  if (bytes > static_cast<double>(usable_memory_bytes()) / 2)
    bad_input(
        "{}: {} rows of {} features need {} of memory, and this machine has {}: lower data.one_hot, or leave out "
        "columns with data.ignore",
        table.file, rows.size(), a.width, human_bytes(bytes), human_bytes(static_cast<double>(usable_memory_bytes())));
  a.features.resize(rows.size() * a.width);
  a.ids.resize(rows.size() * a.id_width);
  std::size_t at = 0, id_at = 0;  // where the column's features begin in a sample
  for (const Feature& f : features_) {
    const TableColumn* const column = table.find(f.name);
    invariant(column != nullptr && column->type == f.type, "a table has the columns that its encoder asked for");
    std::uint64_t missing = 0;
    if (f.type != ColumnType::category) {
      for (std::size_t i = 0; i < rows.size(); ++i) {
        missing += std::isnan(column->numbers[rows[i]]) ? 1 : 0;
        write_number(f, column->numbers[rows[i]], a.features.data() + i * a.width + at);
      }
    } else {
      const auto places = places_of_words(*column, f);
      std::vector<std::uint64_t> unknown(column->words.size());
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::uint32_t code = column->codes[rows[i]];
        std::int64_t place = 0;
        if (code == TableColumn::no_word) {
          ++missing;
          place = f.missing_category ? static_cast<std::int64_t>(f.categories.size()) : f.most_frequent;
          if (f.categories.empty() && !f.missing_category) place = -1;
        } else if ((place = places[code]) < 0) {
          ++unknown[code];
        }
        if (f.embedded)
          a.ids[i * a.id_width + id_at] = static_cast<std::int32_t>(place + 1);
        else if (place >= 0)
          a.features[i * a.width + at + static_cast<std::size_t>(place)] = 1;
      }
      if (remarks)
        for (std::size_t w = 0; w < unknown.size(); ++w)
          if (unknown[w] > 0) remarks->unknown[f.name][column->words[w]] = unknown[w];
    }
    if (remarks && missing > 0) remarks->missing[f.name] = missing;
    at += f.width();
    id_at += f.embedded ? 1 : 0;
  }
  DatasetInfo info;
  info.size = rows.size();
  info.fields = fields(with_targets);
  info.inputs = fields(false).size();
  if (with_targets && task_ == TableTask::classify) {
    const TableColumn* const column = table.find(targets_[0].name);
    invariant(column != nullptr, "a table has the targets that its encoder asked for");
    const std::vector<std::int32_t> classes = classes_of(*column);
    for (const std::uint64_t r : rows) {
      const std::uint32_t code = column->codes[r];
      if (code == TableColumn::no_word || classes[code] < 0)
        bad_input("{}: line {}, column '{}': expected one of the classes {}, found '{}'", table.file, table.lines[r],
                  column->name, listed(class_names_), code == TableColumn::no_word ? "" : column->words[code]);
      a.labels.push_back(classes[code]);
    }
    info.classes = static_cast<std::int64_t>(class_names_.size());
    info.class_names = class_names_;
  } else if (with_targets && task_ != TableTask::none) {
    for (const std::uint64_t r : rows)
      for (const Target& t : targets_)
        a.targets.push_back(static_cast<float>((table.find(t.name)->numbers[r] - t.mean) / t.deviation));
  }
  if (task_ == TableTask::regress || task_ == TableTask::multi_label)
    for (const Target& t : targets_)
      info.targets.push_back({t.name, t.mean, t.deviation, task_ == TableTask::multi_label});
  info.fingerprint = Fingerprint().add(table.fingerprint).add(to_json().dump()).add(rows.size()).hex();
  return std::make_shared<EncodedTable>(std::move(info), std::move(a));
}

namespace {

// A file without a header has the columns of the training file, with or without the targets, or those alone that are
// read: it is given a header.
std::string header_for(const Source& source, const TableFormat& format, const std::vector<std::string>& columns,
                       const std::vector<std::string>& targets, const std::vector<std::string>& read) {
  const auto in = [](const std::vector<std::string>& list, const std::string& name) {
    return std::ranges::find(list, name) != list.end();
  };
  std::vector<std::string> all = columns, without, names;
  for (const std::string& name : columns) {
    if (!in(targets, name)) without.push_back(name);
    if (in(read, name)) names.push_back(name);
  }
  const std::size_t found = read_rows(source, format)->names().size();
  if (found != names.size()) names = found == without.size() ? without : all;
  if (names.size() != found)
    bad_input(
        "{}: {} columns, but the table that was trained on had {} ({} without what is predicted, of which {} are "
        "read: {}), and there is no header to tell which are which",
        source.name(), found, all.size(), without.size(), read.size(), listed(read));
  std::string line;
  for (const std::string& name : names) {
    std::string quoted = name;
    for (std::size_t at = 0; (at = quoted.find('"', at)) != std::string::npos; at += 2) quoted.insert(at, 1, '"');
    line += (line.empty() ? "\"" : fmt::format("{}\"", format.delimiter)) + quoted + "\"";
  }
  return line + "\n";
}

}  // namespace

std::vector<std::string> TableEncoder::columns_read() const {
  std::vector<std::string> read;
  for (const Feature& f : features_) read.push_back(f.name);
  return read;
}

Table TableEncoder::read(const SourcePtr& given, bool with_targets, const FormatWishes& wishes) const {
  FormatWishes w = wishes;
  w.usual_decimal = decimal_;
  if (!header_ && !w.header) w.header = false;
  TableFormat format = find_format(given, w);
  SourcePtr source = as_utf8(given, format);
  std::uint64_t added_lines = 0;
  if (!format.json_lines && !format.header) {
    std::vector<std::string> targets;
    for (const Target& t : targets_) targets.push_back(t.name);
    const std::string line = header_for(*source, format, columns_, targets, columns_read());
    const auto header = std::as_bytes(std::span(line));
    const std::byte* const bytes = source->at(0, source->size());
    std::vector<std::byte> all(header.begin(), header.end());
    all.insert(all.end(), bytes + (format.byte_order_mark ? 3 : 0), bytes + source->size());
    source = memory_source(given->name(), std::move(all));
    format.header = true;
    added_lines = 1;
  }
  Table table = read_table(*source, format, wanted(with_targets), missing_values_, added_lines);
  if (added_lines > 0) table.format.header = false;
  return table;
}

Table TableEncoder::read_row(const SourcePtr& row) const {
  FormatWishes wishes;
  const std::string_view text(reinterpret_cast<const char*>(row->at(0, row->size())), row->size());
  wishes.json_lines = text.starts_with('{');
  if (*wishes.json_lines) return read(row, false, wishes);
  wishes.header = false;
  wishes.delimiter = ',';
  const std::size_t fewest = features_.size(), all = columns_.size(), without = all - targets_.size();
  std::size_t with_commas = 0;
  for (const char delimiter : {';', '\t', '|', ','}) {
    CsvRows rows(*row, delimiter);
    std::vector<CsvRows::Cell> cells;
    if (!rows.next(cells)) break;
    if (delimiter == ',') with_commas = cells.size();
    if (cells.size() != fewest && cells.size() != without && cells.size() != all) continue;
    if (delimiter == ',' && decimal_ == ',' && cells.size() != fewest) continue;  // some are decimal commas, perhaps
    if (delimiter != ',' && decimal_ != ',' && cells.size() == 1) continue;
    wishes.delimiter = delimiter;
    return read(row, false, wishes);
  }
  if (text.find(';') != std::string_view::npos) wishes.delimiter = ';';
  if (decimal_ == ',' && with_commas > 1 && wishes.delimiter == ',')
    bad_input(
        "{}: {} cells between commas, and {} columns are read ({}); the training file has decimal commas: "
        "separate the cells with semicolons",
        row->name(), with_commas, fewest, listed(columns_read()));
  return read(row, false, wishes);
}

}  // namespace echelon::data
