#include "data/table/schema.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/listed.h"
#include "base/text.h"

namespace echelon::data {

namespace {

using Role = SchemaColumn::Role;

constexpr std::uint64_t most_number_classes = 20;  // whole numbers with more different values are a quantity

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

std::string lower_name(std::string_view name) {
  std::string lower(name);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
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

class SchemaMaker {
 public:
  SchemaMaker(const TableProfile& profile, const TableOptions& options) : profile_(profile), options_(options) {}

  TableSchema make() {
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

 private:
  std::optional<std::size_t> find(const std::string& name, const char* key) {
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

  void force(std::size_t c, ColumnType type) {
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

  void leave_out(std::size_t c, std::string reason) {
    schema_.columns[c].role = Role::left_out;
    schema_.columns[c].reason = std::move(reason);
  }

  std::string left_out_text() const {
    std::string out;
    for (const SchemaColumn& c : schema_.columns)
      if (c.role == Role::left_out) out += fmt::format("{} {} ({})", out.empty() ? ":" : ",", c.name, c.reason);
    return out;
  }

  void choose_targets() {
    if (options_.task == TableTask::none) return;
    std::vector<std::size_t> targets;
    for (const std::string& name : options_.labels)
      if (const auto c = find(name, "label")) targets.push_back(*c);
    if (options_.labels.empty()) {
      const auto usual = usual_target();
      if (!usual) return;
      targets.push_back(*usual);
    }
    for (const std::size_t c : targets) {
      const SchemaColumn& column = schema_.columns[c];
      if (column.role == Role::left_out)
        problems_.push_back(fmt::format("column '{}' is both data.label and in data.ignore", column.name));
      if (column.role == Role::target)
        problems_.push_back(fmt::format("column '{}' is named twice in data.label", column.name));
      schema_.columns[c].role = Role::target;
    }
    if (problems_.empty()) choose_task(targets);
  }

  std::optional<std::size_t> usual_target() {
    for (const std::string_view name : {"label", "class", "target", "y"})
      for (std::size_t c = 0; c < profile_.columns.size(); ++c)
        if (lower_name(profile_.columns[c].name) == name) return c;
    if (!profile_.format.json_lines) return profile_.columns.size() - 1;
    std::vector<std::string> names;
    for (const auto& c : profile_.columns) names.push_back(c.name);
    problems_.push_back(fmt::format(
        "which column is to be predicted? set data.label (`echelon init`: --label COLUMN); the file has: {}",
        listed(names)));
    return {};
  }

  // 0 and 1, or truth values.
  static bool is_binary(const ColumnProfile& p) {
    if (p.booleans == p.present) return true;
    return !p.many && p.numbers == p.present && p.whole == p.numbers && p.least >= 0 && p.most <= 1;
  }

  static bool looks_like_classes(const ColumnProfile& p) {
    if (p.numbers < p.present) return true;
    return !p.many && p.whole == p.numbers && p.distinct() <= most_number_classes && 2 * p.distinct() <= p.present &&
           p.most < 1000 && p.least >= 0;
  }

  void choose_task(const std::vector<std::size_t>& targets) {
    const auto all = [&](auto test) {
      return std::ranges::all_of(targets, [&](std::size_t c) { return test(profile_.columns[c]); });
    };
    if (options_.task)
      schema_.task = *options_.task;
    else if (targets.size() > 1)
      schema_.task = all(is_binary) ? TableTask::multi_label : TableTask::regress;
    else
      schema_.task = all(looks_like_classes) ? TableTask::classify : TableTask::regress;
    if (!options_.task && schema_.task == TableTask::classify && !expect_classes(profile_.columns[targets[0]])) return;
    for (const std::size_t c : targets) check_target(c, targets.size());
  }

  // A target that is no number is a class, unless that makes no sense; then somebody has to say it.
  bool expect_classes(const ColumnProfile& p) {
    const ColumnType type = p.present > 0 ? type_of(p) : ColumnType::number;
    const auto another = [&](const std::string& why) {
      problems_.push_back(fmt::format(
          "column '{}' is to be predicted{}, but {}; name another with data.label (`echelon "
          "init`: --label COLUMN), or set task = \"classify\" if each of them is a class",
          p.name, &p == &profile_.columns.back() && options_.labels.empty() ? ", being the last one" : "", why));
      return false;
    };
    if (type == ColumnType::date) return another("has dates, which are neither a number nor classes");
    if (type == ColumnType::text)
      return another(fmt::format("has text: {}{} different values in {} rows", p.many ? "more than " : "", p.distinct(),
                                 p.present));
    return true;
  }

  // Rows are put in the order of a column only if every row has a place in it.
  void check_time() {
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

  void check_target(std::size_t c, std::size_t targets) {
    const ColumnProfile& p = profile_.columns[c];
    if (p.present == 0) {
      problems_.push_back(fmt::format("column '{}' is to be predicted, but all its cells are missing", p.name));
      return;
    }
    switch (schema_.task) {
      case TableTask::classify:
        if (targets > 1)
          problems_.push_back(
              "one column can be classified, not several: set task = \"multi_label\" for columns of 0 "
              "and 1, or task = \"regress\" for numbers");
        else
          choose_classes(c);
        return;
      case TableTask::multi_label:
        if (!is_binary(p))
          problems_.push_back(fmt::format(
              "column '{}' is one of several labels, but has other values than 0, 1, true, false, yes, no", p.name));
        schema_.columns[c].type = p.booleans == p.present ? ColumnType::boolean : ColumnType::number;
        return;
      case TableTask::regress:
        if (p.booleans < p.present && p.numbers < p.present)
          problems_.push_back(
              fmt::format("column '{}' is to be predicted as a number, but line {} has '{}'; set task = "
                          "\"classify\" if these are classes",
                          p.name, p.odd_line, p.odd));
        schema_.columns[c].type = p.booleans == p.present ? ColumnType::boolean : ColumnType::number;
        return;
      case TableTask::none: return;
    }
  }

  void choose_classes(std::size_t c) {
    const ColumnProfile& p = profile_.columns[c];
    schema_.columns[c].type = ColumnType::category;
    if (p.many || p.distinct() > 10000) {
      problems_.push_back(
          fmt::format("column '{}' has {}{} different values: too many classes; set data.label to "
                      "another column, or task = \"regress\"",
                      p.name, p.many ? "more than " : "", p.distinct()));
      return;
    }
    std::vector<std::string> names;
    for (const auto& [name, count] : p.values) names.push_back(name);
    const char decimal = profile_.format.decimal;
    if (p.numbers == p.present)
      std::ranges::stable_sort(names, {}, [&](const std::string& n) { return *cell_number(n, decimal); });
    if (!options_.class_names.empty()) {
      std::vector<std::string> unknown;
      for (const std::string& name : names)
        if (std::ranges::find(options_.class_names, name) == options_.class_names.end()) unknown.push_back(name);
      if (!unknown.empty())
        problems_.push_back(
            fmt::format("column '{}' has classes that data.class_names does not: {}", p.name, listed(unknown)));
      names = options_.class_names;
    }
    if (names.size() < 2)
      problems_.push_back(
          fmt::format("column '{}' is to be predicted, but has one value only ('{}')", p.name, names.front()));
    schema_.class_names = std::move(names);
    if (p.numbers == p.present && !options_.task)
      schema_.notes.push_back(
          fmt::format("'{}' has {} different whole numbers, taken for classes; task = \"regress\" takes them for a "
                      "quantity",
                      p.name, p.distinct()));
  }

  // One cell that is larger than all others by so much leaves no difference between the others. Where most are so
  // large, it is only their unit.
  void check_range(std::size_t c) {
    const ColumnProfile& p = profile_.columns[c];
    const SchemaColumn& column = schema_.columns[c];
    if (column.role == Role::left_out || column.type != ColumnType::number || 2 * p.beyond >= p.numbers) return;
    if (p.beyond > 0)
      problems_.push_back(
          fmt::format("line {}, column '{}': {} is beyond all that can be computed with (3.4e38): correct it, or add "
                      "it to data.missing_values",
                      p.beyond_line, p.name, p.beyond_first));
  }

  void judge_feature(std::size_t c) {
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

  const TableProfile& profile_;
  const TableOptions& options_;
  TableSchema schema_;
  std::vector<std::string> problems_;
  std::vector<std::size_t> forced_;  // columns whose type the recipe says
};

}  // namespace

std::string_view name_of(TableTask task) {
  constexpr std::array<std::string_view, 4> names = {"none", "classify", "regress", "multi_label"};
  return names[static_cast<std::size_t>(task)];
}

std::vector<std::size_t> TableSchema::with(Role role) const {
  std::vector<std::size_t> found;
  for (std::size_t c = 0; c < columns.size(); ++c)
    if (columns[c].role == role) found.push_back(c);
  return found;
}

TableSchema make_schema(const TableProfile& profile, const TableOptions& options) {
  return SchemaMaker(profile, options).make();
}

}  // namespace echelon::data
