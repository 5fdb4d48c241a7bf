// A file that is to be predicted, read as the encoder's own table was.

#include <algorithm>

#include "base/error.h"
#include "base/listed.h"
#include "data/files/fingerprint.h"
#include "data/formats/csv.h"
#include "data/table/encoder.h"

namespace echelon::data {

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
  if (added_lines > 0) table.format.header = false, table.fingerprint = fingerprint_of(*as_utf8(given, table.format));
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
