#include "recipe/compose.h"

#include <fmt/format.h>

#include "base/error.h"

namespace echelon {

namespace {

// What `key` says after all overrides, and where.
const Option* said_after(Options& tree, const std::vector<std::string>& overrides, const std::string& key) {
  std::vector<std::string> notes;
  Problems problems;
  for (const std::string& text : overrides)
    if (text.starts_with(key + "=")) override_option(tree, text, notes, problems);
  const auto it = tree.items.find(key);
  return it == tree.items.end() ? nullptr : &it->second;
}

// An update rule that the system asks for keeps the recipe's rate and limits, which mean the same under every rule.
void keep_common_keys(Options& local, const Options& tree) {
  const auto needed = local.items.find("optim");
  const auto own = tree.items.find("optim");
  if (needed == local.items.end() || own == tree.items.end()) return;
  const auto *to = std::get_if<Option::Table>(&needed->second.value),
             *from = std::get_if<Option::Table>(&own->second.value);
  if (!to || !from) return;
  auto copy = std::make_shared<Options>(**to);
  for (const char* key : {"lr", "weight_decay", "clip_norm", "clip_value"})
    if (const auto it = (*from)->items.find(key); it != (*from)->items.end()) copy->items.try_emplace(key, it->second);
  needed->second.value = std::move(copy);
}

// A table as it would be called in a recipe: "optim" where the system's file says "local.optim".
Options renamed(const Options& table, const std::string& where) {
  Options out = table;
  out.where = where;
  for (auto& [key, option] : out.items)
    if (auto* inner = std::get_if<Option::Table>(&option.value))
      *inner = std::make_shared<Options>(renamed(**inner, where.empty() ? key : where + "." + key));
  return out;
}

const std::string* text_in(const Options& table, const char* key) {
  const auto it = table.items.find(key);
  return it == table.items.end() ? nullptr : std::get_if<std::string>(&it->second.value);
}

void add_system(const SystemFile& system, LoadedOptions& loaded) {
  Options below;
  for (const auto& [axis, table] : axes(system))
    if (!table->items.empty()) below.items[axis] = {std::make_shared<Options>(*table), table->place};
  loaded.tree = merged(below, loaded.tree, loaded.notes);
  if (system.local.items.empty()) return;
  Options over = renamed(system.local, "");
  keep_common_keys(over, loaded.tree);
  loaded.tree = merged(loaded.tree, over, loaded.notes);
}

}  // namespace

std::string compose(Disk& disk, const std::vector<std::string>& overrides, const std::string& flag,
                    const SystemPlaces& places, LoadedOptions& loaded, Problems& problems) {
  Options probe = loaded.tree;
  const Option* said = said_after(probe, overrides, "system");
  const std::string* in_recipe = said ? std::get_if<std::string>(&said->value) : nullptr;
  const std::string name = !flag.empty() ? flag : in_recipe ? *in_recipe : "";
  if (name.empty()) return "";  // a `system` that is no text is found by who reads the recipe
  const Place place = !flag.empty() ? Place(0, "--system " + flag) : said->place;
  if (const std::string* resolved = text_in(loaded.tree, "composed_from")) {
    if (*resolved == name) return "";
    loaded.notes.push_back(fmt::format("system is now \"{}\", so the tables of \"{}\" are dropped", name, *resolved));
    for (const char* key : {"composed_from", "rule", "exchange", "when", "sync", "codec", "order"})
      loaded.tree.items.erase(key);
  }
  try {
    const std::string path = find_system(disk, name, places);
    const SystemFile system = parse_system(read_text(disk, path, most_system_bytes), path, problems);
    loaded.files.push_back(path);
    add_system(system, loaded);
    return name;
  } catch (const BadInput& problem) {
    problems.add(place, problem.what());
    return "";
  }
}

}  // namespace echelon
