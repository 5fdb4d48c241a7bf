#include "cli/systems/system_details.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/systems/system_traffic.h"
#include "parallel/axes.h"
#include "parallel/composition.h"
#include "recipe/graph_file.h"
#include "recipe/toml.h"
#include "world/os/host.h"

namespace echelon::cli {

namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson to_json(const Option& option);

OrderedJson to_json(const Options& table) {
  OrderedJson j = OrderedJson::object();
  for (const auto& [key, option] : table.items) j[key] = to_json(option);
  return j;
}

struct ToJson {
  OrderedJson operator()(const Option::List& list) const {
    OrderedJson j = OrderedJson::array();
    for (const Option& element : list) j.push_back(to_json(element));
    return j;
  }
  OrderedJson operator()(const Option::Table& table) const { return to_json(*table); }
  OrderedJson operator()(const auto& value) const { return value; }
};

OrderedJson to_json(const Option& option) { return std::visit(ToJson{}, option.value); }

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

OrderedJson composition_json(const SystemFile& s) {
  OrderedJson j;
  for (const auto& [axis, table] : axes(s)) {
    const PartInfo& part = chosen_part(composition_axis(axis), *table);
    OrderedJson settings = OrderedJson::array();
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

OrderedJson to_json(const SystemFile& s) {
  OrderedJson taxonomy;
  for (const auto& [column, text] : taxonomy_columns(s))
    if (column != "system" && column != "paper") taxonomy[column] = text;
  OrderedJson surveys = OrderedJson::array();
  for (const int number : s.surveys) surveys.push_back(survey_names()[static_cast<std::size_t>(number)]);
  return {{"name", s.name},
          {"title", s.title},
          {"paper", s.paper},
          {"section", s.section},
          {"row", s.row},
          {"surveys", surveys},
          {"faithful", s.deviates.empty()},
          {"epochs", s.epochs},
          {"about", s.about},
          {"deviates", s.deviates},
          {"worker", s.worker},
          {"server", s.server},
          {"use_when", s.use_when},
          {"avoid_when", s.avoid_when},
          {"taxonomy", taxonomy},
          {"composition", composition_json(s)},
          {"local", to_json(s.local)}};
}

// The columns that text may take: the terminal's, but no more than is good to read. All of it where there is none.
int text_columns() { return std::min(100, terminal_columns(1)); }

constexpr const char* usual_model = "lenet5";  // for which bytes per step are computed

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

// Prose: paragraphs are filled, whatever lines they were written in.
std::string filled(const std::string& text) {
  std::string out, paragraph;
  const auto end = [&] {
    if (!paragraph.empty()) out += wrapped(paragraph, text_columns(), 2);
    paragraph.clear();
  };
  for (const std::string_view line : split(text, '\n')) {
    if (line.empty() || line.starts_with(' ') || line.starts_with("- ")) end();
    if (line.starts_with(' '))
      out += fmt::format("  {}\n", line);
    else if (!line.empty())
      paragraph += (paragraph.empty() ? "" : " ") + std::string(line);
  }
  end();
  return out;
}

// A program: its lines and their indentation are kept, and go on further in where they are too long.
std::string indented(const std::string& text) {
  std::string out;
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t blanks = line.find_first_not_of(' ');
    if (blanks == std::string_view::npos) continue;
    out += wrapped(line.substr(blanks), text_columns(), 2 + static_cast<int>(blanks), 4);
  }
  return out;
}

// "name = value" in its column and what it means beside it, or below it if there is too little room.
std::string explained(const std::string& said, const std::string& about, int indent, int column) {
  const bool beside = display_width(said) + indent < column && text_columns() - column >= 24;
  if (!beside) return fmt::format("{:<{}}{}\n", "", indent, said) + wrapped(about, text_columns(), indent + 4);
  std::string text = wrapped(about, text_columns(), column);
  text.replace(0, static_cast<std::size_t>(column), fit(fmt::format("{:<{}}{}", "", indent, said), column));
  return text;
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
  fmt::print("\n{}", wrapped("Composition (any of it can be changed: --set AXIS.KEY=VALUE)", text_columns(), 0, 2));
  for (const auto& [axis, table] : axes(s)) {
    const PartInfo& part = chosen_part(composition_axis(axis), *table);
    const std::string name = composition_axis(axis).named ? part.name : "";
    fmt::print("{}", explained(fmt::format("{:<9} {:<15}", axis, name), part.about, 2, 28));
    for (const Setting& setting : part.settings) {
      const std::string value = value_of(*table, setting);
      const std::string usual = table->items.contains(setting.name) && value != setting.usual
                                    ? fmt::format(" (default {})", setting.usual)
                                    : "";
      fmt::print("{}", explained(fmt::format("{} = {}{}", setting.name, value, usual), setting.about, 12, 55));
    }
  }
  if (s.local.items.empty()) return;
  fmt::print("  {:<9} {:<15} {}\n", "local", "", composition_axis("local").about);
  print_flat(s.local, "");
}

// What the surveys call it, how near it is to the published one, and how well it trained.
void print_place_in_the_field(const SystemFile& s) {
  fmt::print("\nIn the surveys\n");
  for (const int number : s.surveys)
    fmt::print("{}", wrapped(fmt::format("\"{}\" in {}", s.row, survey_names()[static_cast<std::size_t>(number)]),
                             text_columns(), 2, 4));
  if (s.surveys.empty()) fmt::print("  in none of them\n");
  if (s.deviates.empty())
    fmt::print("\nFaithful to the published system: no deviation is known\n");
  else
    fmt::print("\nDeviates from the published system\n{}", filled(s.deviates));
  if (s.epochs > 0)
    fmt::print(
        "\nMeasured (docs/systems.md)\n{}",
        wrapped(fmt::format("LeNet-5 on MNIST with four workers: 98.5 % of the test digits after {} epochs", s.epochs),
                text_columns(), 2));
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

nlohmann::ordered_json system_json(const std::string& name, int workers, std::size_t batch) {
  const auto disk = make_real_disk();
  const SystemFile s = system_to_show(*disk, name);
  const SystemTraffic t = traffic_of(s, usual_model, workers, batch);
  OrderedJson j = to_json(s);
  j["traffic"] = {{"formula", t.formula},      {"messages_formula", t.messages_formula},
                  {"model", usual_model},      {"workers", workers},
                  {"batch", t.batch},          {"numbers", t.floats},
                  {"buckets", t.buckets},      {"encoded_bytes", t.encoded_bytes},
                  {"bytes_per_step", t.bytes}, {"messages_per_step", t.messages},
                  {"at_most", t.at_most}};
  return j;
}

void show_system(const std::string& name, int workers, std::size_t batch, bool json) {
  if (json) {
    fmt::print("{}\n", system_json(name, workers, batch).dump());
    return;
  }
  const auto disk = make_real_disk();
  const SystemFile s = system_to_show(*disk, name);
  const char* model = usual_model;
  const SystemTraffic t = traffic_of(s, model, workers, batch);
  fmt::print("{}{}\n{}", wrapped(fmt::format("{}: {}", s.name, s.title), text_columns(), 0, 2),
             wrapped(s.paper, text_columns(), 0, 2), filled(s.about));
  print_place_in_the_field(s);
  fmt::print("\nEvery worker\n{}", indented(s.worker));
  if (!s.server.empty()) fmt::print("\nServer\n{}", indented(s.server));
  fmt::print("\nTaxonomy\n");
  for (const auto& [column, text] : taxonomy_columns(s))
    if (column != "system" && column != "paper") fmt::print("  {:<12} {}\n", column, text);
  print_composition(s);
  fmt::print(
      "\n{}{}",
      wrapped("Bytes per step (of one exchange; n workers, W bytes of the model as encoded)", text_columns(), 0, 2),
      wrapped(t.formula, text_columns(), 2));
  fmt::print("Messages\n{}{}", wrapped(t.messages_formula, text_columns(), 2),
             wrapped("In numbers, with what ranks tell each other about losses and work", text_columns(), 0, 2));
  const std::string one = fmt::format(
      "{} with {} workers, batches of {} ({} numbers{}, W = {:.0f}): {}{:.0f} bytes in {:.1f} messages a step, of all "
      "together",
      model, workers, t.batch, t.floats, t.buckets > 1 ? fmt::format(" in {} buckets", t.buckets) : "", t.encoded_bytes,
      t.at_most ? "at most " : "", t.bytes, t.messages);
  fmt::print("{}", wrapped(one, text_columns(), 2));
  if (t.measured)
    fmt::print("{}", wrapped("so much if the gradient leaves in one; a run measures how many buckets pay, each with as "
                             "many messages",
                             text_columns(), 2));
  fmt::print("\nUse it when\n{}\nAvoid it when\n{}", filled(s.use_when), filled(s.avoid_when));
  fmt::print("\n{}",
             wrapped(fmt::format("Try: echelon train recipes/demo.toml --workers 4 --system {}", shell_quoted(name)),
                     text_columns(), 0, 2));
}

}  // namespace echelon::cli
