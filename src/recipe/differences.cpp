#include "recipe/differences.h"

#include <fmt/format.h>

namespace echelon {

namespace {

using Flat = std::map<std::string, std::string>;

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
    flat[key] = to_text(option);
    return;
  }
  for (std::size_t i = 0; i < list->size(); ++i) flatten((*list)[i], fmt::format("{}[{}]", key, i), flat);
}

}  // namespace

std::vector<Difference> differences(const Options& first, const Options& second) {
  Flat a, b;
  flatten(first, "", a);
  flatten(second, "", b);
  a.erase("title"), b.erase("title");
  std::map<std::string, Difference> found;
  for (const auto& [key, value] : a) found[key] = {key, value, "-"};
  for (const auto& [key, value] : b) {
    const auto at = found.try_emplace(key, Difference{key, "-", "-"}).first;
    at->second.second = value;
  }
  std::vector<Difference> result;
  for (auto& [key, difference] : found)
    if (difference.first != difference.second) result.push_back(std::move(difference));
  return result;
}

}  // namespace echelon
