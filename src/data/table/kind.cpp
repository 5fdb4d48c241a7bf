#include "data/table/kind.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"

namespace echelon::data {

namespace {

constexpr std::array<std::string_view, 5> table_endings = {".csv", ".tsv", ".jsonl", ".ndjson", ".tab"};

std::optional<char> one_character(OptionReader& table, const std::string& key, std::string_view example) {
  const std::string text = table.text(key, "automatic");
  if (text == "automatic") return {};
  if (text == "tab") return '\t';
  if (text.size() == 1 && text != "\"" && text != "\n" && text != "\r") return text[0];
  table.problem(key, fmt::format("must be one character, such as {}", example));
  return {};
}

FormatWishes read_format_wishes(OptionReader& table) {
  FormatWishes w;
  w.delimiter = one_character(table, "delimiter", "\";\" or \"\\t\"");
  w.decimal = one_character(table, "decimal", "\",\"");
  if (w.decimal && *w.decimal != '.' && *w.decimal != ',')
    table.problem("decimal", "must be \".\" or \",\""), w.decimal.reset();
  if (w.decimal && w.delimiter && *w.decimal == *w.delimiter)
    table.problem("decimal", "is the same character as data.delimiter");
  const std::string header = table.choice("header", "automatic", {"automatic", "yes", "no"});
  if (header != "automatic") w.header = header == "yes";
  const std::string encoding = table.choice("encoding", "automatic", {"automatic", "utf-8", "latin-1", "utf-16"});
  if (encoding != "automatic")
    w.encoding = encoding == "utf-8" ? Encoding::utf8 : encoding == "latin-1" ? Encoding::latin1 : Encoding::utf16;
  return w;
}

std::map<std::string, ColumnType> read_types(OptionReader& table) {
  std::map<std::string, ColumnType> types;
  OptionReader reader = table.table("types");
  for (const auto& [column, option] : reader.options().items)
    if (const auto type = column_type_named(reader.choice(column, "", column_type_names()))) types[column] = *type;
  return types;
}

}  // namespace

TableEncoder read_encoder(Disk& disk, const std::string& path) {
  constexpr std::uint64_t most_bytes = 256u << 20;
  if (!disk.exists(path)) bad_input("{}: there is no such file: expected the encoder of a table", path);
  return TableEncoder(parse_json(read_text(disk, path, most_bytes), path), path);
}

bool is_table_name(std::string_view name) {
  if (name.ends_with(".gz")) name.remove_suffix(3);
  return std::ranges::any_of(table_endings, [&](std::string_view end) { return name.ends_with(end); });
}

std::string table_in_directory(Disk& disk, const std::string& directory, const std::string& split) {
  for (const std::string_view end : table_endings)
    for (const char* packed : {"", ".gz"}) {
      const std::string path = fmt::format("{}/{}{}{}", directory, split, end, packed);
      if (disk.exists(path)) return path;
    }
  return "";
}

TableOptions read_table_options(OptionReader& table) {
  TableOptions o;
  o.format = read_format_wishes(table);
  o.labels = table.texts("label", {});
  o.ignore = table.texts("ignore", {});
  o.time = table.text("time", "");
  o.types = read_types(table);
  const std::string task =
      table.choice("task", "automatic", {"automatic", "classify", "regress", "multi_label", "none"});
  for (const TableTask t : {TableTask::none, TableTask::classify, TableTask::regress, TableTask::multi_label})
    if (task == name_of(t)) o.task = t;
  o.class_names = table.texts("class_names", {});
  o.missing_values = table.texts("missing_values", {});
  o.fill_numbers = table.choice("missing_numbers", "median", {"median", "mean"}) == "median"
                       ? TableOptions::FillNumbers::median
                       : TableOptions::FillNumbers::mean;
  o.fill_categories = table.choice("missing_categories", "own", {"own", "most_frequent"}) == "own"
                          ? TableOptions::FillCategories::own
                          : TableOptions::FillCategories::most_frequent;
  o.missing_indicator = table.flag("missing_indicator", true);
  const std::string dates = table.choice("dates", "both", {"both", "days", "parts"});
  o.dates = dates == "both"   ? TableOptions::Dates::both
            : dates == "days" ? TableOptions::Dates::days
                              : TableOptions::Dates::parts;
  o.one_hot = static_cast<std::size_t>(table.integer("one_hot", 16, 0, 1 << 16));
  o.standardise = table.flag("standardise", true);
  o.standardise_target = table.flag("standardise_target", true);
  return o;
}

OpenSplit read_table_kind(OptionReader& table, const DataPath& where) {
  const TableOptions options = read_table_options(table);
  const std::string encoder = table.text("encoder", "");
  // The training file is asked for once for every part: it is read once. One thread opens a recipe's data.
  auto read = std::make_shared<std::map<std::string, TableFilePtr>>();
  return [=](Disk& disk, const std::string& split) -> DatasetPtr {
    const std::string path = where(disk);
    const bool directory = disk.is_directory(path);
    const std::string train = directory ? table_in_directory(disk, path, "train") : path;
    if (train.empty()) bad_input("{}: there is no train.csv (.tsv, .jsonl) in this directory", path);
    TableFilePtr& file = (*read)[train];
    if (!file && encoder.empty()) file = read_table_file(open_source(disk, train), options);
    if (!file)
      file = read_table_file(open_source(disk, train), options,
                             std::make_shared<TableEncoder>(read_encoder(disk, encoder)));
    if (split == "train") return rows_of_table(file);
    const std::string other = directory ? table_in_directory(disk, path, split) : "";
    if (other.empty()) only_train(split, path);
    return rows_of_table(read_table_file_like(open_source(disk, other), file));
  };
}

}  // namespace echelon::data
