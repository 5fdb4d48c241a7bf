// The encoder as JSON: what a run's folder keeps of it.

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "data/table/encoder.h"

namespace echelon::data {

namespace {

constexpr int encoder_version = 1;
constexpr std::array tasks = {TableTask::none, TableTask::classify, TableTask::regress, TableTask::multi_label};
constexpr std::array date_orders = {DateOrder::year_first, DateOrder::day_first, DateOrder::month_first};

template <typename E, std::size_t n>
E value_named(const std::array<E, n>& values, const std::string& name) {
  for (const E value : values)
    if (name_of(value) == name) return value;
  bad_input("there is no '{:.40}'", name);
}

ColumnType read_type(const Json& json) {
  const auto type = column_type_named(json.get<std::string>());
  if (!type || *type == ColumnType::text) bad_input("there is no column of the type {:.40}", json.dump());
  return *type;
}

void check_scale(double mean, double deviation, const std::string& name) {
  if (!std::isfinite(mean) || !std::isfinite(deviation) || !(deviation > 0))
    bad_input("column '{:.40}' has the mean {} and the deviation {}", name, mean, deviation);
}

TableEncoder::Feature read_feature(const Json& j) {
  TableEncoder::Feature f{.name = j.at("name").get<std::string>(), .type = read_type(j.at("type"))};
  if (f.type == ColumnType::category) {
    f.categories = j.at("categories").get<std::vector<std::string>>();
    f.embedded = j.at("embedded").get<bool>();
    f.missing_category = j.at("missing_category").get<bool>();
    f.most_frequent = j.at("most_frequent").get<std::uint32_t>();
    if (!std::ranges::is_sorted(f.categories)) bad_input("the categories of column '{:.40}' are not sorted", f.name);
    if (f.most_frequent >= std::max<std::size_t>(1, f.categories.size()))
      bad_input("column '{:.40}' has no category {}", f.name, f.most_frequent);
    return f;
  }
  f.fill = j.at("fill").get<double>();
  f.mean = j.at("mean").get<double>();
  f.deviation = j.at("deviation").get<double>();
  f.indicator = j.at("indicator").get<bool>();
  check_scale(f.mean, f.deviation, f.name);
  constexpr double far = 1e9;  // days; a date must stay one
  if (!std::isfinite(f.fill) || (f.type == ColumnType::date && std::abs(f.fill) > far))
    bad_input("column '{:.40}' is filled with {}", f.name, f.fill);
  if (f.type == ColumnType::date) {
    f.date_order = value_named(date_orders, j.at("date_order").get<std::string>());
    f.days = j.at("days").get<bool>();
    f.parts = j.at("parts").get<bool>();
    f.hours = j.at("hours").get<bool>();
  }
  return f;
}

Json json_of(const TableEncoder::Feature& f) {
  Json j{{"name", f.name}, {"type", name_of(f.type)}};
  if (f.type == ColumnType::category) {
    j["categories"] = f.categories;
    j["embedded"] = f.embedded;
    j["missing_category"] = f.missing_category;
    j["most_frequent"] = f.most_frequent;
    return j;
  }
  j["fill"] = f.fill;
  j["mean"] = f.mean;
  j["deviation"] = f.deviation;
  j["indicator"] = f.indicator;
  if (f.type == ColumnType::date) {
    j["date_order"] = name_of(f.date_order);
    j["days"] = f.days;
    j["parts"] = f.parts;
    j["hours"] = f.hours;
  }
  return j;
}

}  // namespace

Json TableEncoder::to_json() const {
  Json features = Json::array(), targets = Json::array();
  for (const Feature& f : features_) features.push_back(json_of(f));
  for (const Target& t : targets_)
    targets.push_back({{"name", t.name}, {"type", name_of(t.type)}, {"mean", t.mean}, {"deviation", t.deviation}});
  Json json{{"version", encoder_version},        {"task", name_of(task_)},
            {"features", std::move(features)},   {"targets", std::move(targets)},
            {"class_names", class_names_},       {"columns", columns_},
            {"missing_values", missing_values_}, {"header", header_}};
  if (decimal_ == ',') json["decimal"] = ",";
  return json;
}

TableEncoder::TableEncoder(const Json& j, std::string_view where) try {
  if (const int version = j.at("version").get<int>(); version != encoder_version)
    bad_input("version {} was written by another Echelon; this one reads version {}", version, encoder_version);
  task_ = value_named(tasks, j.at("task").get<std::string>());
  for (const Json& f : j.at("features")) features_.push_back(read_feature(f));
  for (const Json& t : j.at("targets")) {
    Target& target = targets_.emplace_back();
    target.name = t.at("name").get<std::string>();
    target.type = read_type(t.at("type"));
    target.mean = t.at("mean").get<double>();
    target.deviation = t.at("deviation").get<double>();
    check_scale(target.mean, target.deviation, target.name);
  }
  class_names_ = j.at("class_names").get<std::vector<std::string>>();
  columns_ = j.at("columns").get<std::vector<std::string>>();
  missing_values_ = j.at("missing_values").get<std::vector<std::string>>();
  header_ = j.at("header").get<bool>();
  if (j.value("decimal", std::string()) == ",") decimal_ = ',';
  const bool classify = task_ == TableTask::classify;
  if (features_.empty() || feature_width() + embedded_columns() == 0) bad_input("there are no features");
  if (classify != !class_names_.empty() || (classify && targets_.size() != 1) ||
      (task_ == TableTask::none) != targets_.empty())
    bad_input("the task {} does not fit {} targets and {} classes", name_of(task_), targets_.size(),
              class_names_.size());
  for (const Target& t : targets_)
    if (classify != (t.type == ColumnType::category) || t.type == ColumnType::date)
      bad_input("the task {} does not fit a target of the type {}", name_of(task_), name_of(t.type));
} catch (const Json::exception& e) {
  bad_input("{}: this is no encoder of a table: {}", where, e.what());
} catch (const BadInput& e) {
  bad_input("{}: this is no encoder of a table: {}", where, e.what());
}

}  // namespace echelon::data
