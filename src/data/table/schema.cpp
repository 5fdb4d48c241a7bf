#include "data/table/schema.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/listed.h"
#include "base/text.h"
#include "data/table/schema_maker.h"

namespace echelon::data {

namespace {

// A column by name, or by number from 0 on (negative: from the end).
std::optional<std::size_t> column_named(const TableProfile& profile, const std::string& name) {
  const auto it = std::ranges::find(profile.columns, name, &ColumnProfile::name);
  if (it != profile.columns.end()) return static_cast<std::size_t>(it - profile.columns.begin());
  const auto n = static_cast<std::int64_t>(profile.columns.size());
  std::int64_t index = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  if (error != std::errc{} || end != name.data() + name.size() || index < -n || index >= n) return {};
  return static_cast<std::size_t>(index < 0 ? index + n : index);
}

// A number of the row: whole, all different, and named so, or nameless (as a table with an index is written).
bool looks_like_id(const ColumnProfile& c, std::size_t index) {
  const bool numbered = c.numbers == c.present && c.whole == c.numbers && c.missing == 0 && c.present >= 5;
  if (!numbered || !(c.rising || (!c.many && c.distinct() == c.present) || c.many)) return false;
  const std::string name = lower_name(c.name);
  if (index == 0 && c.rising && (name == "column_0" || name.starts_with("unnamed") || name == "0")) return true;
  const std::size_t before = name.find_last_of("_ -");
  const std::string last = before == std::string::npos ? name : name.substr(before + 1);
  for (const std::string_view word :
       {"id", "index", "idx", "row", "nr", "nr.", "no", "no.", "number", "key", "uuid", "rownames"})
    if (last == word) return true;
  return name.starts_with("id_") || (name.ends_with("id") && c.name.ends_with("Id"));
}

}  // namespace

std::string lower_name(std::string_view name) {
  std::string lower(name);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

TableSchema SchemaMaker::make() {
  for (const ColumnProfile& c : profile_.columns)
    schema_.columns.push_back({.name = c.name, .type = type_of(c), .date_order = date_order_of(c)});
  for (const auto& [name, type] : options_.types)
    if (const auto c = find(name, "types")) force(*c, type);
  for (const std::string& name : options_.ignore)
    if (const auto c = find(name, "ignore")) leave_out(*c, "data.ignore names it");
  for (const std::string& name : profile_.repeated)
    schema_.notes.push_back(
        fmt::format("several columns are called '{0}': the first keeps the name, the next is called '{0}.2'", name));
  choose_targets();
  check_time();
  for (std::size_t c = 0; c < schema_.columns.size(); ++c) judge_feature(c), check_range(c);
  if (schema_.with(Role::feature).empty() && problems_.empty())
    problems_.push_back(fmt::format("no column is left for the features{}{}{}", left_out_text(),
                                    schema_.notes.empty() ? "" : "; ", fmt::join(schema_.notes, "; ")));
  if (!problems_.empty())
    bad_input("{}: {}{}", profile_.file, fmt::join(problems_, "\n  "),
              problems_.size() == 1 ? "" : fmt::format("\n  ({})", to_string(profile_.format)));
  return std::move(schema_);
}

std::optional<std::size_t> SchemaMaker::find(const std::string& name, const char* key) {
  const auto column = column_named(profile_, name);
  if (column) return column;
  std::vector<std::string> names;
  for (const auto& c : profile_.columns) names.push_back(c.name);
  std::string hint = did_you_mean(name, names);
  if (names.size() == 1 && !profile_.format.json_lines)
    hint += fmt::format("; with one column only, is data.delimiter = \"{}\" right?", profile_.format.delimiter);
  problems_.push_back(
      fmt::format("data.{}: there is no column '{}'; the file has: {}{}", key, name, listed(names), hint));
  return {};
}

void SchemaMaker::force(std::size_t c, ColumnType type) {
  const ColumnProfile& p = profile_.columns[c];
  schema_.columns[c].type = type;
  forced_.push_back(c);
  if (type == ColumnType::number && p.numbers < p.present)
    problems_.push_back(fmt::format(
        "data.types says that column '{}' has numbers, but line {} has '{}' ({} of {} cells are none); add the word "
        "to data.missing_values, or make the column a category",
        p.name, p.odd_line, p.odd, p.present - p.numbers, p.present));
  if (type == ColumnType::boolean && p.booleans < p.present)
    problems_.push_back(
        fmt::format("data.types says that column '{}' is boolean, but {} of {} cells are not true, "
                    "false, yes or no",
                    p.name, p.present - p.booleans, p.present));
  if (type == ColumnType::date && std::ranges::max(p.dates) < p.present)
    problems_.push_back(fmt::format(
        "data.types says that column '{}' has dates, but {} of {} cells are none that can be read (2024-03-17, "
        "17.03.2024, 03/17/2024, with a time behind it)",
        p.name, p.present - std::ranges::max(p.dates), p.present));
  if (type == ColumnType::category && p.many)
    problems_.push_back(
        fmt::format("data.types says that column '{}' is a category, but it has more than {} different "
                    "values",
                    p.name, p.distinct()));
}

void SchemaMaker::leave_out(std::size_t c, std::string reason) {
  schema_.columns[c].role = Role::left_out;
  schema_.columns[c].reason = std::move(reason);
}

std::string SchemaMaker::left_out_text() const {
  std::string out;
  for (const SchemaColumn& c : schema_.columns)
    if (c.role == Role::left_out) out += fmt::format("{} {} ({})", out.empty() ? ":" : ",", c.name, c.reason);
  return out;
}

void SchemaMaker::check_time() {
  if (options_.time.empty()) return;
  const auto c = find(options_.time, "time");
  if (!c) return;
  const ColumnProfile& p = profile_.columns[*c];
  const ColumnType type = schema_.columns[*c].type;
  if (type != ColumnType::date && type != ColumnType::number)
    problems_.push_back(fmt::format("data.time: column '{}' has neither dates nor numbers (line {} has '{}')", p.name,
                                    p.odd_line, p.odd));
  else if (p.missing > 0)
    problems_.push_back(fmt::format(
        "data.time: {} of {} rows have nothing in column '{}', so they have no place in time: leave them out",
        p.missing, p.rows(), p.name));
  else
    schema_.notes.push_back(
        fmt::format("the rows are in the order of '{}': the last ones test, those before them validate", p.name));
}

void SchemaMaker::check_range(std::size_t c) {
  const ColumnProfile& p = profile_.columns[c];
  const SchemaColumn& column = schema_.columns[c];
  if (column.role == Role::left_out || column.type != ColumnType::number || 2 * p.beyond >= p.numbers) return;
  if (p.beyond > 0)
    problems_.push_back(
        fmt::format("line {}, column '{}': {} is beyond all that can be computed with (3.4e38): correct it, or add "
                    "it to data.missing_values",
                    p.beyond_line, p.name, p.beyond_first));
}

void SchemaMaker::judge_feature(std::size_t c) {
  SchemaColumn& column = schema_.columns[c];
  const ColumnProfile& p = profile_.columns[c];
  if (column.role != Role::feature) return;
  if (std::ranges::find(forced_, c) != forced_.end()) {
    if (column.type == ColumnType::text) leave_out(c, "data.types says that it is text");
    return;
  }
  if (p.present == 0) return leave_out(c, "all its cells are missing");
  if (looks_like_id(p, c)) return leave_out(c, "it numbers the rows");
  if (p.numbers * 10 >= p.present * 9 && p.numbers < p.present)
    schema_.notes.push_back(
        fmt::format("column '{}' is not taken for numbers because of '{}' on line {}, although {} of {} cells are; "
                    "missing_values = [\"{}\"] would make it numbers",
                    p.name, p.odd, p.odd_line, p.numbers, p.present, p.odd));
  if (const std::uint64_t dates = p.most_dates();
      dates * 10 >= p.present * 9 && dates < p.present && !p.undated.empty())
    schema_.notes.push_back(
        fmt::format("column '{}' is not taken for dates because '{}' on line {} is none, although {} of {} cells "
                    "are; missing_values = [\"{}\"] would make it dates",
                    p.name, p.undated, p.undated_line, dates, p.present, p.undated));
  if (column.type == ColumnType::text)
    return leave_out(
        c, fmt::format("text: {}{} different values in {} rows", p.many ? "more than " : "", p.distinct(), p.rows()));
  if (!p.many && p.distinct() == 1 && p.missing == 0) return leave_out(c, "it has one value only");
  if (column.type == ColumnType::date && p.dates[1] == p.present && p.dates[2] == p.present)
    schema_.notes.push_back(
        fmt::format("the dates of column '{}' are read {}; where that is wrong, write them with "
                    "the year first",
                    p.name, name_of(column.date_order)));
}

std::string_view name_of(TableTask task) {
  constexpr std::array<std::string_view, 4> names = {"none", "classify", "regress", "multi_label"};
  return names[static_cast<std::size_t>(task)];
}

std::vector<std::size_t> TableSchema::with(SchemaColumn::Role role) const {
  std::vector<std::size_t> found;
  for (std::size_t c = 0; c < columns.size(); ++c)
    if (columns[c].role == role) found.push_back(c);
  return found;
}

TableSchema make_schema(const TableProfile& profile, const TableOptions& options) {
  return SchemaMaker(profile, options).make();
}

}  // namespace echelon::data
