#include "recipe/differences.h"

#include <fmt/format.h>

namespace echelon {

namespace {

struct Said {
  std::string whole, shown;
};
using Flat = std::map<std::string, Said>;

// A value as it is shown is cut where it becomes long.
std::string whole_of(const Option& option) {
  if (const auto* text = std::get_if<std::string>(&option.value)) return fmt::format("\"{}\"", *text);
  const auto* list = std::get_if<Option::List>(&option.value);
  if (!list) return to_text(option);
  std::string all;
  for (const Option& element : *list) all += whole_of(element) + ",";
  return all;
}

void flatten(const Option& option, const std::string& key, Flat& flat);

void flatten(const Options& table, const std::string& prefix, Flat& flat) {
  for (const auto& [name, option] : table.items)
    flatten(option, prefix.empty() ? name : fmt::format("{}.{}", prefix, name), flat);
}

void flatten(const Option& option, const std::string& key, Flat& flat) {
  if (const auto* table = std::get_if<Option::Table>(&option.value)) return flatten(**table, key, flat);
  const auto* list = std::get_if<Option::List>(&option.value);
  const bool of_tables = list && !list->empty() && std::holds_alternative<Option::Table>(list->front().value);
  if (!of_tables) {
    flat[key] = {whole_of(option), to_text(option)};
    return;
  }
  for (std::size_t i = 0; i < list->size(); ++i) flatten((*list)[i], fmt::format("{}[{}]", key, i), flat);
}

}  // namespace

std::vector<DifferingKey> differing_keys(const std::vector<Options>& recipes) {
  std::vector<Flat> flat(recipes.size());
  Flat all;
  for (std::size_t i = 0; i < recipes.size(); ++i) {
    flatten(recipes[i], "", flat[i]);
    flat[i].erase("title");
    all.insert(flat[i].begin(), flat[i].end());
  }
  const Said none{"", "-"};
  std::vector<DifferingKey> result;
  for (const auto& [key, said] : all) {
    DifferingKey differing{key, {}};
    bool same = true;
    for (const Flat& f : flat) {
      const auto it = f.find(key);
      const Said& here = it == f.end() ? none : it->second;
      same = same && here.whole == said.whole;
      differing.values.push_back(here.shown);
    }
    if (!same) result.push_back(std::move(differing));
  }
  return result;
}

std::vector<Difference> differences(const Options& first, const Options& second) {
  std::vector<Difference> result;
  for (DifferingKey& d : differing_keys({first, second}))
    result.push_back({std::move(d.key), std::move(d.values[0]), std::move(d.values[1])});
  return result;
}

}  // namespace echelon
