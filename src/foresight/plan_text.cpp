#include "foresight/plan_text.h"

#include <fmt/format.h>

#include "base/text.h"

namespace echelon::foresight {

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

std::string plan_toml(const PlanSpec& plan, const std::string& about) {
  std::string text;
  for (const std::string_view line : split(about, '\n'))
    if (!line.empty()) text += fmt::format("# {}\n", line);
  const auto add = [&](const char* key, const std::string& value) { text += fmt::format("{} = {}\n", key, value); };
  const PlanSpec usual;
  if (plan.data > 0) add("data", std::to_string(plan.data));
  add("pipeline", std::to_string(plan.pipeline));
  add("tensor", std::to_string(plan.tensor));
  if (plan.sequence) add("sequence", "true");
  add("schedule", quoted(plan.schedule));
  if (plan.schedule == "pipedream") add("sync", quoted(plan.sync));
  if (plan.chunks != usual.chunks) add("chunks", std::to_string(plan.chunks));
  if (!plan.cuts.empty()) {
    std::string list;
    for (const std::string& cut : plan.cuts) list += (list.empty() ? "" : ", ") + quoted(cut);
    add("cuts", "[" + list + "]");
  }
  add("zero", std::to_string(plan.zero));
  if (plan.prefetch != usual.prefetch) add("prefetch", std::to_string(plan.prefetch));
  add("recompute", quoted(plan.recompute));
  if (!plan.offload.empty()) add("offload", quoted(plan.offload));
  if (plan.neighbours != usual.neighbours) add("neighbours", quoted(plan.neighbours));
  if (plan.evaluate != usual.evaluate) add("evaluate", quoted(plan.evaluate));
  if (!plan.scheme.empty()) add("scheme", quoted(plan.scheme));
  for (const LayerRule& rule : plan.layers) {
    text += "\n[[layer]]\n";
    add("match", quoted(rule.match));
    if (!rule.split.empty()) add("split", quoted(rule.split));
    if (rule.ways > 0) add("ways", std::to_string(rule.ways));
    if (rule.stage >= 0) add("stage", std::to_string(rule.stage));
  }
  return text;
}

}  // namespace echelon::foresight
