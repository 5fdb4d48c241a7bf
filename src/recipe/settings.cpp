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
  for (const models::Entry& entry : models::zoo())
    read("model", "name", std::string(entry.name), [&](OptionReader& r) { entry.make(r, entry.usual_inputs()); });
  all.add("model.name");
  return all.sorted();
}

std::string setting_named(const std::string& word, const std::vector<std::string>& names) {
  for (const char* table : {"train", "optim", "schedule", "model", "data"})
    if (std::ranges::binary_search(names, fmt::format("{}.{}", table, word))) return fmt::format("{}.{}", table, word);
  return "";
}

}  // namespace echelon
