#include "recipe/settings.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "data/kinds.h"
#include "data/open.h"
#include "models/zoo.h"
#include "recipe/recipe.h"

namespace echelon {

namespace {

// Every key that a reader asks for.
class Collected {
 public:
  void add(const OptionReader& reader) {
    for (const auto& [key, usual] : reader.asked()) names_.insert(reader.name(key));
  }
  void add(const std::string& name) { names_.insert(name); }
  std::vector<std::string> sorted() const { return {names_.begin(), names_.end()}; }

 private:
  std::set<std::string> names_;
};

Options table_with(const char* where, const char* key, const std::string& value) {
  Options table{.items = {}, .where = where};
  if (!value.empty()) table.items[key].value = value;
  return table;
}

// Of a network's row: "hidden = [1024, 1024], dropout = 0".
void add_model_keys(std::string_view keys, Collected& all) {
  for (const std::string_view part : split(keys, ',')) {
    const std::size_t equals = part.find(" = ");
    if (equals == std::string_view::npos) continue;
    const std::string_view key = part.substr(part.find_first_not_of(' '), equals);
    all.add(fmt::format("model.{}", key.substr(0, key.find(' '))));
  }
}

}  // namespace

std::vector<std::string> setting_names() {
  Collected all;
  Problems problems;
  const auto read = [&](const char* where, const char* key, const std::string& value, const auto& reading) {
    const Options table = table_with(where, key, value);
    OptionReader reader(table, problems);
    reading(reader);
    all.add(reader);
  };
  read("train", "name", "", [](OptionReader& r) { read_train(r); });
  for (const std::string& rule : rule_names()) read("optim", "name", rule, [](OptionReader& r) { read_optim(r); });
  for (const std::string& name : schedule_names())
    read("schedule", "name", name, [](OptionReader& r) { read_schedule(r); });
  for (const std::string& kind : data::kind_names())
    read("data", "kind", kind, [](OptionReader& r) { data::read_data_spec(r); });
  for (const models::Entry& entry : models::zoo()) add_model_keys(entry.keys, all);
  all.add("model.name");
  return all.sorted();
}

std::string setting_named(const std::string& word, const std::vector<std::string>& names) {
  for (const char* table : {"train", "optim", "schedule", "model", "data"})
    if (std::ranges::binary_search(names, fmt::format("{}.{}", table, word))) return fmt::format("{}.{}", table, word);
  return "";
}

}  // namespace echelon
