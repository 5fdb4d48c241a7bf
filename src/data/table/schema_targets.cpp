// What is to be learnt of a table's targets: which columns they are, and whether they are classes, labels or numbers.

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/listed.h"
#include "base/text.h"
#include "data/table/schema_maker.h"

namespace echelon::data {

namespace {

constexpr std::uint64_t most_number_classes = 20;  // whole numbers with more different values are a quantity

// 0 and 1, or truth values.
bool is_binary(const ColumnProfile& p) {
  if (p.booleans == p.present) return true;
  return !p.many && p.numbers == p.present && p.whole == p.numbers && p.least >= 0 && p.most <= 1;
}

bool like_classes(const ColumnProfile& p) {
  if (p.numbers < p.present) return true;
  return !p.many && p.whole == p.numbers && p.distinct() <= most_number_classes && 2 * p.distinct() <= p.present &&
         p.most < 1000 && p.least >= 0;
}

}  // namespace

void SchemaMaker::choose_targets() {
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

std::optional<std::size_t> SchemaMaker::usual_target() {
  for (const std::string_view name : {"label", "class", "target", "y"})
    for (std::size_t c = 0; c < profile_.columns.size(); ++c)
      if (lower_name(profile_.columns[c].name) == name) return c;
  if (!profile_.format.json_lines) return profile_.columns.size() - 1;
  std::vector<std::string> names;
  for (const auto& c : profile_.columns) names.push_back(c.name);
  problems_.push_back(
      fmt::format("which column is to be predicted? set data.label (`echelon init`: --label COLUMN); the file has: {}",
                  listed(names)));
  return {};
}

void SchemaMaker::choose_task(const std::vector<std::size_t>& targets) {
  const auto all = [&](auto test) {
    return std::ranges::all_of(targets, [&](std::size_t c) { return test(profile_.columns[c]); });
  };
  if (options_.task)
    schema_.task = *options_.task;
  else if (targets.size() > 1)
    schema_.task = all(is_binary) ? TableTask::multi_label : TableTask::regress;
  else
    schema_.task = all(like_classes) ? TableTask::classify : TableTask::regress;
  if (!options_.task && schema_.task == TableTask::classify && !expect_classes(profile_.columns[targets[0]])) return;
  for (const std::size_t c : targets) check_target(c, targets.size());
}

bool SchemaMaker::expect_classes(const ColumnProfile& p) {
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
    return another(
        fmt::format("has text: {}{} different values in {} rows", p.many ? "more than " : "", p.distinct(), p.present));
  return true;
}

void SchemaMaker::check_target(std::size_t c, std::size_t targets) {
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
      else if (!p.many && p.distinct() == 1)
        problems_.push_back(fmt::format("column '{}' is to be predicted, but has one value only ('{}')", p.name,
                                        p.values.begin()->first));
      schema_.columns[c].type = p.booleans == p.present ? ColumnType::boolean : ColumnType::number;
      return;
    case TableTask::none: return;
  }
}

void SchemaMaker::choose_classes(std::size_t c) {
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

}  // namespace echelon::data
