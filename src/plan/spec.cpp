#include "plan/spec.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "plan/batch_split.h"
#include "plan/mesh.h"

namespace echelon {

namespace {

constexpr int most_ranks = 1 << 16;

}  // namespace

bool PlanSpec::goes_both_ways() const {
  return pipeline > 1 && (schedule == "bidirectional" || schedule == "dualpipe");
}

bool PlanSpec::has_own_result() const {
  const ScheduleKind* kind = find_schedule(schedule);
  return pipeline > 1 && kind && kind->own_result;
}

int PlanSpec::staleness(int stage) const {
  if (!has_own_result() || is_message_driven()) return 0;  // of the latter nobody knows it beforehand
  return sync == "vertical" ? pipeline - 1 : pipeline - 1 - stage;
}

bool PlanSpec::splits_batch() const {
  return std::ranges::any_of(layers, [](const LayerRule& rule) { return rule.split == "batch"; });
}

int PlanSpec::stages() const {
  if (!splits_batch()) return pipeline * chunks;
  if (alternating > 0) return alternating;
  int last = 1;
  for (const LayerRule& rule : layers) last = std::max(last, rule.stage);
  return last + 1;
}

PlanSpec with_cores_as_ranks(PlanSpec plan, int cores) {
  plan.data *= cores;  // or still what is left of the ranks
  plan.neighbours = "replicas";
  return plan;
}

std::string to_string(const PlanSpec& plan) {
  std::string text = plan.data > 0 ? fmt::format("data={}", plan.data) : "";
  const auto add = [&](const std::string& more) { text += (text.empty() ? "" : ",") + more; };
  if (plan.tensor > 1) add(fmt::format("tensor={}", plan.tensor));
  if (plan.sequence) add("sequence=true");
  if (plan.pipeline > 1 || text.empty()) add(fmt::format("pipeline={}", plan.pipeline));
  if (plan.pipeline > 1) add("schedule=" + plan.schedule);
  if (plan.has_own_result() && !plan.is_message_driven()) add("sync=" + plan.sync);
  if (plan.is_message_driven() && plan.active > 0) add(fmt::format("active={}", plan.active));
  if (plan.is_message_driven() && plan.updates > 1) add(fmt::format("updates={}", plan.updates));
  if (!plan.cuts.empty()) add(fmt::format("cuts={}", fmt::join(plan.cuts, ":")));
  if (plan.chunks > 1) add(fmt::format("chunks={}", plan.chunks));
  const PlanSpec usual;
  if (plan.zero != usual.zero) add(fmt::format("zero={}", plan.zero));
  if (plan.prefetch != usual.prefetch) add(fmt::format("prefetch={}", plan.prefetch));
  if (plan.recompute != usual.recompute) add("recompute=" + plan.recompute);
  if (plan.offload != usual.offload) add("offload=" + plan.offload);
  if (plan.offloads != usual.offloads) add("offloads=" + plan.offloads);
  if (plan.tasks != usual.tasks) add("tasks=" + plan.tasks);
  if (plan.neighbours != usual.neighbours) add("neighbours=" + plan.neighbours);
  if (plan.evaluate != usual.evaluate) add("evaluate=" + plan.evaluate);
  return text;
}

Options plan_options(const std::string& text, Problems& problems) {
  Options table;
  table.where = "";
  table.place = Place(0, "--plan " + text);
  for (const std::string_view part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == part.size()) {
      problems.add(table.place, fmt::format("'{}' is not key=value, as in data=2,pipeline=2", part));
      continue;
    }
    const std::string key(part.substr(0, equals)), value(part.substr(equals + 1));
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (table.items.contains(key)) problems.add(table.place, fmt::format("{} is given twice", key));
    Option& option = table.items[key];
    option.place = table.place;
    if (key == "cuts") {
      std::vector<Option> names;
      for (const std::string_view name : split(value, ':')) names.push_back({std::string(name), table.place});
      option.value = std::move(names);
    } else if (value == "true" || value == "false")
      option.value = value == "true";
    else if (error == std::errc() && end == value.data() + value.size())
      option.value = number;
    else
      option.value = value;
  }
  return table;
}

namespace {

// Degrees that only the rules of layers say.
void add_degrees(OptionReader& table, PlanSpec& plan) {
  int ways = 1, stages = 1;
  for (const LayerRule& rule : plan.layers) ways = std::max(ways, rule.ways), stages = std::max(stages, rule.stage + 1);
  if (!table.has("tensor") && !table.has("mesh") && ways > 1) {
    plan.tensor = ways;  // the layers that no rule names are not split
    plan.layers.insert(plan.layers.begin(), {.match = "*", .split = "none", .ways = 1});
  }
  if (!table.has("pipeline") && !table.has("mesh") && !plan.splits_batch()) plan.pipeline = stages;
}

}  // namespace

PlanSpec read_plan(OptionReader& table) {
  PlanSpec plan;
  plan.data = static_cast<int>(table.integer("data", 0, 1, most_ranks));
  plan.pipeline = static_cast<int>(table.integer("pipeline", 1, 1, most_ranks));
  plan.tensor = static_cast<int>(table.integer("tensor", 1, 1, most_ranks));
  plan.sequence = table.flag("sequence", false);
  plan.chunks = static_cast<int>(table.integer("chunks", 1, 1, 1024));
  plan.schedule = table.choice("schedule", plan.chunks > 1 ? "interleaved" : "1f1b", pipeline_schedule_names());
  if (plan.schedule == "ampnet") {
    plan.active = static_cast<int>(table.integer("active", 0, 1, most_ranks));
    plan.updates = static_cast<int>(table.integer("updates", 1, 1, most_ranks));
  }
  if (plan.schedule == "pipedream") plan.sync = table.choice("sync", plan.sync, {"stash", "vertical"});
  plan.cuts = table.texts("cuts", {});
  plan.zero = static_cast<int>(table.integer("zero", 0, 0, 3));
  plan.prefetch = static_cast<int>(table.integer("prefetch", plan.prefetch, 0, 1024));
  plan.recompute = table.text("recompute", plan.recompute);
  plan.offload = table.text("offload", "");
  plan.offloads = table.choice("offloads", plan.offloads, {"state", "all"});
  plan.tasks = table.choice("tasks", plan.tasks, {"fixed", "free"});
  plan.neighbours = table.choice("neighbours", plan.neighbours, {"stages", "replicas"});
  plan.evaluate = table.choice("evaluate", plan.evaluate, {"all", "first"});
  read_mesh(table, plan);
  plan.layers = read_layer_rules(table);
  if (table.has("scheme")) plan.scheme = table.choice("scheme", "c", batch_schemes());
  add_degrees(table, plan);
  table.done();
  return plan;
}

}  // namespace echelon
