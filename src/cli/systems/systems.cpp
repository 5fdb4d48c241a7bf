// `echelon systems`: every published way to train together, in the columns of the taxonomy (Langer et al. 2020); one of
// them in detail.

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/runs/run_table.h"
#include "cli/systems/system_details.h"
#include "cli/verbs.h"
#include "parallel/axes.h"
#include "recipe/system_file.h"
#include "world/os/host.h"

namespace echelon::cli {

namespace {

using OrderedJson = nlohmann::ordered_json;

const char* heading(const std::string& section) {
  if (section == "A") return "Gradients to one place or through a collective";
  if (section == "B") return "Parameter servers and bounded staleness";
  if (section == "C") return "Workers that train alone and exchange now and then";
  if (section == "D") return "Fewer bytes";
  if (section == "E") return "Order on the wire";
  return "Others";
}

using Columns = std::vector<std::pair<std::string, std::string>>;

// Name and one-line description, then the taxonomy.
Columns columns_of(const SystemFile& s) {
  Columns columns = taxonomy_columns(s);
  columns.insert(columns.begin() + 1, {"what it does", s.title});
  return columns;
}

// How many of the columns have room beside each other; the first two always.
std::size_t fitting(const std::vector<int>& widths, int room) {
  constexpr int gap = 2;
  int total = widths[0] + gap + widths[1];
  std::size_t count = 2;
  while (count < widths.size() && (total += gap + widths[count]) <= room) ++count;
  return count;
}

void list(bool json) {
  const auto disk = make_real_disk();
  std::vector<SystemFile> all;
  for (const std::string& name : system_names(*disk)) all.push_back(read_system(*disk, name));
  std::ranges::stable_sort(all, {}, &SystemFile::section);
  if (json) {
    OrderedJson j = OrderedJson::array();
    for (const SystemFile& s : all) {
      OrderedJson taxonomy;
      for (const auto& [column, text] : taxonomy_columns(s))
        if (column != "system" && column != "paper") taxonomy[column] = text;
      j.push_back({{"name", s.name},
                   {"title", s.title},
                   {"paper", s.paper},
                   {"section", s.section},
                   {"heading", heading(s.section)},
                   {"taxonomy", taxonomy}});
    }
    fmt::print("{}\n", j.dump());
    return;
  }
  if (all.empty()) {
    fmt::print("no systems were found; they lie in recipes/systems of the repository\n");
    return;
  }
  std::vector<int> widths;
  const Columns names = columns_of(all[0]);
  for (const auto& [column, text] : names) widths.push_back(display_width(column));
  for (const SystemFile& s : all) {
    const auto row = columns_of(s);
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i].second));
  }
  if (is_terminal(1)) widths[1] = std::min(widths[1], std::max(12, terminal_columns(1) - widths[0] - 2));
  const std::size_t shown = is_terminal(1) ? fitting(widths, terminal_columns(1)) : widths.size();
  const auto line = [&](const auto& text_of) {
    std::string text;
    for (std::size_t i = 0; i < shown; ++i) text += (i ? "  " : "") + fit(text_of(i), widths[i]);
    text.erase(text.find_last_not_of(' ') + 1);
    fmt::print("{}\n", text);
  };
  line([&](std::size_t i) { return names[i].first; });
  std::string section = "?";
  for (const SystemFile& s : all) {
    if (s.section != section) fmt::print("\n{}\n", heading(section = s.section));
    const auto row = columns_of(s);
    line([&](std::size_t i) { return row[i].second; });
  }
  fmt::print("\n{} systems. One in detail: echelon systems show easgd\n", all.size());
  if (shown == widths.size()) return;
  std::vector<std::string> left_out;
  for (std::size_t i = shown; i < names.size(); ++i) left_out.push_back(names[i].first);
  const std::string where = fmt::format(
      "This terminal has no room for {}: a wider one has, and so has `echelon systems | less -S`", joined(left_out));
  fmt::print("{}", wrapped(where, terminal_columns(1), 0));
}

// All parts and settings that a system or --set can name.
void parts(bool json) {
  OrderedJson all;
  for (const Axis& axis : composition_axes()) {
    if (!json)
      fmt::print("[{}]  {}{}\n", axis.name, axis.about,
                 axis.named ? fmt::format("; {} unless said otherwise", axis.usual) : "");
    OrderedJson list = OrderedJson::array();
    for (const PartInfo& part : axis.parts) {
      OrderedJson settings = OrderedJson::array();
      for (const Setting& k : part.settings)
        settings.push_back({{"key", k.name}, {"default", k.usual}, {"about", k.about}});
      list.push_back({{"name", part.name}, {"about", part.about}, {"settings", settings}});
      if (json) continue;
      if (axis.named) fmt::print("  {:<15} {}\n", part.name, part.about);
      for (const Setting& k : part.settings)
        fmt::print("    {} {}\n", fit(fmt::format("{} = {}", k.name, k.usual), 36), k.about);
    }
    all[axis.name] = {{"about", axis.about}, {"default", axis.usual}, {"parts", list}};
  }
  if (json) fmt::print("{}\n", all.dump());
}

}  // namespace

void add_systems(Verb program) {
  const Verb verb = program.add_subcommand("systems", "List the ways to train together, or show one in detail");
  verb.require_subcommand(0, 1);
  verb.footer(
      "Examples:\n  echelon systems\n  echelon systems show easgd\n  echelon systems parts\n  echelon systems --json");
  auto json = std::make_shared<bool>(false);
  verb.add_flag("--json", *json, "Print JSON");
  auto name = std::make_shared<std::string>();
  const Verb showing = verb.add_subcommand(
      "show", "What it is, its programs, its composition with all settings, its traffic, when to use it");
  showing.add_option("name", *name, "A name of `echelon systems`, or a file").required();
  auto workers = std::make_shared<int>(4);
  showing.add_option("--workers", *workers, "For the bytes per step").show_default().range(1, 100000);
  auto batch = std::make_shared<std::size_t>(64);
  showing.add_option("--batch", *batch, "The same: samples of all workers together; only where factors travel")
      .show_default()
      .range(1, 1 << 24);
  showing.add_flag("--json", *json, "Print JSON");
  showing.footer("Example:\n  echelon systems show easgd");
  const Verb naming = verb.add_subcommand("parts", "All parts that systems are composed of, with their settings");
  naming.add_flag("--json", *json, "Print JSON");
  naming.footer("Example:\n  echelon systems parts");
  verb.action([=] {
    if (showing.called())
      show_system(*name, *workers, *batch, *json);
    else if (naming.called())
      parts(*json);
    else
      list(*json);
  });
}

}  // namespace echelon::cli
