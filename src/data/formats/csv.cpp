#include "data/formats/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/listed.h"

namespace echelon::data {

CsvRows::CsvRows(const Source& source, char delimiter) : source_(source), delimiter_(delimiter) {
  const std::byte* bytes = source.at(0, source.size());
  if (!bytes)
    bad_input("{}: {} MiB are too much for a CSV file: convert it to NPY", source.name(), source.size() >> 20);
  text_ = {reinterpret_cast<const char*>(bytes), source.size()};
  if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;  // a byte order mark
}

bool CsvRows::next(std::vector<Cell>& row) {
  row.clear();
  unquoted_.clear();
  while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) line_ += text_[at_++] == '\n';
  if (at_ >= text_.size()) return false;
  row_line_ = line_;
  for (;;) {
    if (at_ < text_.size() && text_[at_] == '"') {
      take(row, quoted_cell());
    } else {
      const std::size_t end =
          std::min(text_.find_first_of(std::array{delimiter_, '\n', '\0'}.data(), at_), text_.size());
      std::string_view cell = text_.substr(at_, end - at_);
      if (end == text_.size() || text_[end] == '\n')
        if (cell.ends_with('\r')) cell.remove_suffix(1);
      take(row, {cell, at_});
      at_ = end;
    }
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;  // after a quoted cell
    if (at_ >= text_.size()) return true;
    if (text_[at_] == '\n') return ++at_, ++line_, true;
    if (text_[at_] != delimiter_)
      corrupt(source_, at_, fmt::format("'{}' or the end of line {}", delimiter_, line_),
              fmt::format("'{}'", text_[at_]));
    ++at_;
  }
}

void CsvRows::take(std::vector<Cell>& row, Cell cell) const {
  if (cell.text.size() > most_cell_bytes)
    corrupt(source_, cell.offset, fmt::format("a cell of at most {} bytes on line {}", most_cell_bytes, line_),
            fmt::format("{} bytes (is a quote missing?)", cell.text.size()));
  if (row.size() == most_cells)
    corrupt(source_, cell.offset, fmt::format("at most {} cells on line {}", most_cells, line_),
            "more (is it a table, with this delimiter?)");
  row.push_back(cell);
}

CsvRows::Cell CsvRows::quoted_cell() {
  const std::size_t begin = at_ + 1;
  std::string* changed = nullptr;
  for (std::size_t piece = begin, from = begin;;) {
    const std::size_t quote = text_.find('"', from);
    if (quote == std::string_view::npos)
      corrupt(source_, at_, fmt::format("the closing quote of a cell on line {}", line_),
              "the end of the file (truncated?)");
    line_ += static_cast<std::uint64_t>(std::ranges::count(text_.substr(from, quote - from), '\n'));
    if (quote + 1 < text_.size() && text_[quote + 1] == '"') {
      if (!changed) changed = unquoted_.emplace_back(std::make_unique<std::string>()).get();
      changed->append(text_.substr(piece, quote + 1 - piece));
      piece = from = quote + 2;
      continue;
    }
    at_ = quote + 1;
    if (!changed) return {text_.substr(begin, quote - begin), begin};
    changed->append(text_.substr(piece, quote - piece));
    return {*changed, begin};
  }
}

namespace {

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

std::optional<double> to_number(std::string_view s) {
  s = trimmed(s);
  if (s.starts_with('+')) s.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
  if (s.empty() || error != std::errc{} || end != s.data() + s.size()) return {};
  if (!(std::abs(value) <= std::numeric_limits<float>::max())) return {};  // also what is no number
  return value;
}

// Column names, and which of them are what.
class Columns {
 public:
  Columns(const Source& source, std::vector<std::string> names, const CsvOptions& options)
      : source_(source), names_(std::move(names)), feature_(names_.size(), true) {
    for (const auto& c : options.ignore) feature_[find(c)] = false;
    if (options.task == CsvOptions::Task::none) return;
    label_ = options.label.empty() ? default_label() : find(options.label);
    feature_[*label_] = false;
  }
  std::optional<std::size_t> label() const { return label_; }
  bool is_feature(std::size_t column) const { return feature_[column]; }
  std::size_t features() const { return static_cast<std::size_t>(std::ranges::count(feature_, true)); }
  const std::string& name(std::size_t column) const { return names_[column]; }
  std::size_t size() const { return names_.size(); }

 private:
  std::size_t find(const std::string& column) const {
    if (const auto it = std::ranges::find(names_, column); it != names_.end())
      return static_cast<std::size_t>(it - names_.begin());
    const auto n = static_cast<std::int64_t>(names_.size());
    std::int64_t index = 0;
    const auto [end, error] = std::from_chars(column.data(), column.data() + column.size(), index);
    if (error == std::errc{} && end == column.data() + column.size() && index >= -n && index < n)
      return static_cast<std::size_t>(index < 0 ? index + n : index);
    bad_input("{}: there is no column '{}'; it has: {}", source_.name(), column, listed(names_));
  }
  std::size_t default_label() const {
    for (const char* name : {"label", "class", "target"})
      if (const auto it = std::ranges::find(names_, name); it != names_.end())
        return static_cast<std::size_t>(it - names_.begin());
    return names_.size() - 1;
  }

  const Source& source_;
  std::vector<std::string> names_;
  std::vector<bool> feature_;
  std::optional<std::size_t> label_;
};

struct CsvTable {
  std::vector<float> features;
  std::vector<std::string> labels;
  std::vector<std::uint64_t> label_offsets;
  std::uint64_t rows = 0;
  std::size_t width = 0;
  bool labelled = false;
};

CsvTable parse(const Source& source, const CsvOptions& options) {
  CsvRows rows(source, options.delimiter);
  std::vector<CsvRows::Cell> row;
  if (!rows.next(row)) corrupt(source, 0, "at least one row", "an empty file");
  const bool header = options.header == CsvOptions::Header::yes ||
                      (options.header == CsvOptions::Header::automatic &&
                       std::ranges::none_of(row, [](const auto& c) { return to_number(c.text).has_value(); }));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < row.size(); ++i)
    names.push_back(header ? std::string(trimmed(row[i].text)) : fmt::format("{}", i));
  const Columns columns(source, std::move(names), options);
  if (columns.features() == 0)
    bad_input("{}: no column is left for the features{}", source.name(),
              columns.size() == 1
                  ? fmt::format(": with delimiter = \"{}\" there is one column only; set delimiter = "
                                "\";\" or what separates the cells, or use kind = \"table\", which finds it",
                                options.delimiter)
                  : "");
  CsvTable table;
  table.width = columns.features();
  table.labelled = columns.label().has_value();
  for (bool more = header ? rows.next(row) : true; more; more = rows.next(row)) {
    if (row.size() != columns.size())
      corrupt(source, row.back().offset, fmt::format("{} cells on line {}", columns.size(), rows.line()),
              fmt::format("{}", row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (columns.label() == c) {
        table.labels.emplace_back(trimmed(row[c].text));
        table.label_offsets.push_back(row[c].offset);
      } else if (columns.is_feature(c)) {
        const auto value = to_number(row[c].text);
        if (!value)
          corrupt(source, row[c].offset,
                  fmt::format("a number on line {}, column '{}' (or the column among those to ignore)", rows.line(),
                              columns.name(c)),
                  row[c].text.empty() ? "nothing" : fmt::format("'{:.40}'", row[c].text));
        table.features.push_back(static_cast<float>(*value));
      }
    }
    ++table.rows;
  }
  if (table.rows == 0) corrupt(source, source.size(), "at least one row below the header", "none");
  return table;
}

template <typename T>
SourcePtr as_source(const Source& origin, const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return memory_source(origin.name(), {bytes.begin(), bytes.end()});
}

// The class names of a table whose labels are words; none if they are numbers.
std::vector<std::string> words_of(const CsvTable& table) {
  if (std::ranges::all_of(table.labels, [](const auto& l) { return to_number(l).has_value(); })) return {};
  auto names = table.labels;
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

bool looks_like_classes(const CsvTable& table) {
  return std::ranges::all_of(table.labels, [](const auto& l) {
    const auto v = to_number(l);
    return v && *v >= 0 && *v < 1000 && *v == std::floor(*v);
  });
}

std::vector<std::int32_t> class_numbers(const Source& source, const CsvTable& table,
                                        const std::vector<std::string>& names) {
  std::map<std::string_view, std::int32_t> by_name;
  for (std::size_t i = 0; i < names.size(); ++i) by_name[names[i]] = static_cast<std::int32_t>(i);
  std::vector<std::int32_t> numbers;
  for (std::size_t i = 0; i < table.labels.size(); ++i) {
    const std::string& label = table.labels[i];
    if (!names.empty()) {
      const auto it = by_name.find(label);
      if (it == by_name.end())
        corrupt(source, table.label_offsets[i], fmt::format("one of the classes {}", listed(names)),
                fmt::format("'{:.40}'", label));
      numbers.push_back(it->second);
    } else {
      const auto v = to_number(label);
      if (!v || *v < 0 || *v != std::floor(*v) || *v > 1e9)
        corrupt(source, table.label_offsets[i], "a class: a whole number from 0 on", fmt::format("'{:.40}'", label));
      numbers.push_back(static_cast<std::int32_t>(*v));
    }
  }
  return numbers;
}

std::vector<float> target_numbers(const Source& source, const CsvTable& table) {
  std::vector<float> numbers;
  for (std::size_t i = 0; i < table.labels.size(); ++i) {
    const auto v = to_number(table.labels[i]);
    if (!v)
      corrupt(source, table.label_offsets[i], "a number to be predicted", fmt::format("'{:.40}'", table.labels[i]));
    numbers.push_back(static_cast<float>(*v));
  }
  return numbers;
}

}  // namespace

std::shared_ptr<const Dataset> read_csv(const SourcePtr& source, const CsvOptions& options) {
  const CsvTable table = parse(*source, options);
  const auto dense = [&](SourcePtr values, Element element, std::vector<std::uint64_t> extents) {
    return dense_array(std::move(values), element, false, extents, 0);
  };
  Array x = dense(as_source(*source, table.features), Element::f32, {table.rows, table.width});
  ArrayOptions array;
  array.input = ArrayOptions::Input::features;
  if (!table.labelled) return array_dataset(std::move(x), {}, array);
  array.class_names = options.class_names.empty() ? words_of(table) : options.class_names;
  const bool classify = options.task == CsvOptions::Task::classify || !array.class_names.empty() ||
                        (options.task == CsvOptions::Task::automatic && looks_like_classes(table));
  if (!classify || options.task == CsvOptions::Task::regress) {
    array.class_names.clear();
    return array_dataset(std::move(x),
                         dense(as_source(*source, target_numbers(*source, table)), Element::f32, {table.rows}), array);
  }
  array.classes = options.classes;
  const auto numbers = class_numbers(*source, table, array.class_names);
  return array_dataset(std::move(x), dense(as_source(*source, numbers), Element::i32, {table.rows}), array);
}

std::shared_ptr<const Dataset> open_csv(Disk& disk, const std::string& path, const std::string& split,
                                        const CsvOptions& options) {
  if (!disk.is_directory(path)) return read_csv(open_source(disk, path), options);
  CsvOptions shared = options;
  const auto train = open_source(disk, path + "/train.csv");
  const auto dataset = read_csv(train, shared);
  if (split == "train") return dataset;
  const DatasetInfo& known = dataset->info();
  if (shared.class_names.empty()) shared.class_names = known.class_names;
  shared.classes = known.classes;
  if (shared.task == CsvOptions::Task::automatic)
    shared.task = known.classes > 0 ? CsvOptions::Task::classify : CsvOptions::Task::regress;
  return read_csv(open_source(disk, path + "/" + split + ".csv"), shared);
}

}  // namespace echelon::data
