#include "cli/system_details.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/system_traffic.h"
#include "parallel/axes.h"
#include "parallel/composition.h"
#include "recipe/graph_file.h"
#include "recipe/toml.h"
#include "world/os/host.h"

namespace echelon::cli {

namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Option& option);

Json to_json(const Options& table) {
  Json j = Json::object();
  for (const auto& [key, option] : table.items) j[key] = to_json(option);
  return j;
}

struct ToJson {
  Json operator()(const Option::List& list) const {
    Json j = Json::array();
    for (const Option& element : list) j.push_back(to_json(element));
    return j;
  }
  Json operator()(const Option::Table& table) const { return to_json(*table); }
  Json operator()(const auto& value) const { return value; }
};

Json to_json(const Option& option) { return std::visit(ToJson{}, option.value); }

// A setting of a part as TOML writes it: what it is in this system, or its default.
std::string value_of(const Options& table, const Setting& setting) {
  const auto it = table.items.find(setting.name);
  if (it == table.items.end()) return setting.usual;
  if (const auto* inner = std::get_if<Option::Table>(&it->second.value)) {
    std::string text;
    for (const auto& [key, option] : (*inner)->items)
      text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", key, to_text(option));
    return "{ " + text + " }";
  }
  return to_text(it->second);
}

Json composition_json(const SystemFile& s) {
  Json j;
  for (const auto& [axis, table] : axes(s)) {
    const PartInfo& part = chosen_part(composition_axis(axis), *table);
    Json settings = Json::array();
    for (const Setting& setting : part.settings) {
      settings.push_back({{"key", axis + "." + setting.name},
                          {"about", setting.about},
                          {"default", setting.usual},
                          {"value", value_of(*table, setting)},
                          {"set", table->items.contains(setting.name)}});
    }
    j[axis] = {{"name", part.name}, {"about", part.about}, {"settings", settings}};
  }
  return j;
}

Json to_json(const SystemFile& s) {
  Json taxonomy;
  for (const auto& [column, text] : taxonomy_columns(s))
    if (column != "system" && column != "paper") taxonomy[column] = text;
  return {{"name", s.name},           {"title", s.title},
          {"paper", s.paper},         {"section", s.section},
          {"about", s.about},         {"deviates", s.deviates},
          {"worker", s.worker},       {"server", s.server},
          {"use_when", s.use_when},   {"avoid_when", s.avoid_when},
          {"taxonomy", taxonomy},     {"composition", composition_json(s)},
          {"local", to_json(s.local)}};
}

// In lines of at most so many characters, each indented by two of them.
std::string wrapped(const std::string& text, int columns) {
  std::string out, line;
  for (const std::string_view word : split(text, ' ')) {
    if (!line.empty() && display_width(line) + display_width(word) + 3 > columns) {
      out += "  " + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + std::string(word);
  }
  return out + "  " + line + "\n";
}

// For people: complete, with the graph of a file, and an order that follows from the other parts by its name.
SystemFile system_to_show(Disk& disk, const std::string& name) {
  SystemFile s = read_system(disk, name);
  Problems problems;
  take_in_graph(disk, s.exchange, problems);
  const Composition c = read_composition({s.name, s.rule, s.exchange, s.when, s.sync, s.codec, s.order}, problems);
  problems.throw_if_any(s.path);
  s.order.items.try_emplace("name", Option{c.order_name});
  return s;
}

std::string indented(const std::string& text) {
  std::string out;
  for (const std::string_view line : split(text, '\n'))
    if (!line.empty()) out += fmt::format("  {}\n", line);
  return out;
}

// All settings of a table and of those within it, with their whole names.
void print_flat(const Options& table, const std::string& before) {
  for (const auto& [key, option] : table.items)
    if (const auto* inner = std::get_if<Option::Table>(&option.value))
      print_flat(**inner, before + key + ".");
    else
      fmt::print("            {}{} = {}\n", before, key, to_text(option));
}

void print_composition(const SystemFile& s) {
  fmt::print("\nComposition (any of it can be changed: --set AXIS.KEY=VALUE)\n");
  for (const auto& [axis, table] : axes(s)) {
    const PartInfo& part = chosen_part(composition_axis(axis), *table);
    fmt::print("  {:<9} {:<15} {}\n", axis, composition_axis(axis).named ? part.name : "", part.about);
    for (const Setting& setting : part.settings) {
      const std::string value = value_of(*table, setting);
      const std::string usual = table->items.contains(setting.name) && value != setting.usual
                                    ? fmt::format(" (default {})", setting.usual)
                                    : "";
      const std::string said = fmt::format("{} = {}{}", setting.name, value, usual);
      const std::string first = display_width(said) > 42 ? said + fmt::format("\n{:<54}", "") : fit(said, 42);
      fmt::print("            {} {}\n", first, setting.about);
    }
  }
  if (s.local.items.empty()) return;
  fmt::print("  {:<9} {:<15} {}\n", "local", "", composition_axis("local").about);
  print_flat(s.local, "");
}

}  // namespace

std::vector<std::pair<std::string, std::string>> taxonomy_columns(const SystemFile& s) {
  const SystemFile::Taxonomy& t = s.taxonomy;
  return {{"system", s.name},
          {"paper", s.paper},
          {"parallelism", t.parallelism},
          {"optimisation", t.centralised},
          {"scheduling", t.scheduling},
          {"exchange", t.exchange},
          {"topology", t.topology},
          {"encoding", t.encoding}};
}

void show_system(const std::string& name, int workers, std::size_t batch, bool json) {
  const auto disk = make_real_disk();
  const SystemFile s = system_to_show(*disk, name);
  const char* model = "lenet5";
  const SystemTraffic t = traffic_of(s, model, workers, batch);
  if (json) {
    Json j = to_json(s);
    j["traffic"] = {{"formula", t.formula},
                    {"model", model},
                    {"workers", workers},
                    {"batch", t.batch},
                    {"numbers", t.floats},
                    {"buckets", t.buckets},
                    {"encoded_bytes", t.encoded_bytes},
                    {"bytes_per_step", t.bytes},
                    {"messages_per_step", t.messages},
                    {"at_most", t.at_most}};
    fmt::print("{}\n", j.dump());
    return;
  }
  fmt::print("{}: {}\n{}\n\n{}", s.name, s.title, s.paper, indented(s.about));
  if (!s.deviates.empty()) fmt::print("\nDeviates from the published system\n{}", indented(s.deviates));
  fmt::print("\nEvery worker\n{}", indented(s.worker));
  if (!s.server.empty()) fmt::print("\nServer\n{}", indented(s.server));
  fmt::print("\nTaxonomy\n");
  for (const auto& [column, text] : taxonomy_columns(s))
    if (column != "system" && column != "paper") fmt::print("  {:<12} {}\n", column, text);
  print_composition(s);
  fmt::print("\nBytes per step (of one exchange; n workers, W bytes of the model as encoded)\n{}",
             wrapped(t.formula, std::min(100, terminal_columns(1))));
  fmt::print(
      "  {} with {} workers, batches of {} ({} numbers{}, W = {:.0f}): {}{:.0f} bytes in {:.1f} messages a step, of "
      "all "
      "together\n",
      model, workers, t.batch, t.floats, t.buckets > 1 ? fmt::format(" in {} buckets", t.buckets) : "", t.encoded_bytes,
      t.at_most ? "at most " : "", t.bytes, t.messages);
  if (t.measured)
    fmt::print(
        "  so much if the gradient leaves in one; a run measures how many buckets pay, each with as many messages\n");
  fmt::print("\nUse it when\n{}\nAvoid it when\n{}", indented(s.use_when), indented(s.avoid_when));
  fmt::print("\nTry: echelon train recipes/demo.toml --workers 4 --system {}\n", name);
}

}  // namespace echelon::cli
