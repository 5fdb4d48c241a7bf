#include "recipe/start.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace echelon {

namespace {

std::ptrdiff_t stars(const std::string& pattern) { return std::ranges::count(pattern, '*'); }

void read_renames(OptionReader& table, StartSpec& spec) {
  OptionReader rename = table.table("rename");
  for (const auto& [from, option] : rename.options().items) {
    const std::string to = rename.text(from, "");
    if (stars(from) != stars(to))
      rename.problem(from, fmt::format("= \"{}\" has {} stars, the name {}: each stands for what its twin found", to,
                                       stars(to), stars(from)));
    spec.rename.emplace_back(from, to);
  }
}

Option list_of(const std::vector<std::string>& words, const Place& place) {
  Option::List list;
  for (const std::string& word : words) list.push_back({word, place});
  return {std::move(list), place};
}

}  // namespace

std::optional<StartSpec> read_start(OptionReader& model) {
  if (!model.has("init")) return std::nullopt;
  StartSpec spec;
  if (const auto& items = model.options().items; !std::holds_alternative<Option::Table>(items.at("init").value)) {
    spec.from = model.text("init", "");
    if (spec.from.empty()) model.problem("init", "must be a run, a checkpoint or a safetensors file");
    return spec;
  }
  OptionReader table = model.table("init");
  table.require("from", "which run, checkpoint or safetensors file?");
  spec.from = table.text("from", "");
  spec.sha256 = table.text("sha256", "");
  spec.load = table.texts("load", {});
  spec.skip = table.texts("skip", {});
  read_renames(table, spec);
  table.done();
  return spec;
}

Option to_option(const StartSpec& spec, const Place& place) {
  auto table = std::make_shared<Options>();
  table->where = "model.init";
  table->place = place;
  table->items["from"] = {spec.from, place};
  if (!spec.sha256.empty()) table->items["sha256"] = {spec.sha256, place};
  if (!spec.load.empty()) table->items["load"] = list_of(spec.load, place);
  if (!spec.skip.empty()) table->items["skip"] = list_of(spec.skip, place);
  if (!spec.rename.empty()) {
    auto rename = std::make_shared<Options>();
    rename->where = "model.init.rename";
    for (const auto& [from, to] : spec.rename) rename->items[from] = {to, place};
    table->items["rename"] = {std::move(rename), place};
  }
  return {std::move(table), place};
}

std::string fingerprint_text(const StartSpec& spec) {
  std::string text = fmt::format("init {} load {} skip {}", spec.sha256, spec.load, spec.skip);
  for (const auto& [from, to] : spec.rename) text += fmt::format(" {}={}", from, to);
  return text + "\n";
}

}  // namespace echelon
