#include "parallel/axes.h"

#include <fmt/ranges.h>

#include <array>

#include "base/error.h"
#include "codec/codec.h"
#include "parallel/exchange.h"
#include "parallel/sum/auto_sum.h"

namespace echelon {

namespace {

std::vector<PartInfo> codec_rows() {
  std::vector<PartInfo> all = infos_of(codec_parts());
  all.push_back(codec_choice_part());
  return all;
}

PartInfo local_part() {
  return {"local",
          "lies over the recipe's tables of the same names",
          {{"optim", "the recipe's [optim]", "a table: the update rule of a worker's own steps"},
           {"model", "the recipe's [model]",
            "a table: model.quantise is the number format in which a worker computes (docs/recipes.md)"},
           {"data", "the recipe's [data]", "a table: data.partition says whether a worker's samples stay with it"}}};
}

}  // namespace

const std::vector<Axis>& composition_axes() {
  static const std::vector<Axis> all{
      {"rule", "what is exchanged and how it is merged", "grad_mean", infos_of(rule_parts())},
      {"exchange", "with whom", "all_reduce", infos_of(exchange_parts())},
      {"when", "after which steps", "when", {when_part()}, false},
      {"sync", "for whom a worker waits", "bsp", infos_of(sync_parts())},
      {"codec", "in which encoding", "none", codec_rows()},
      {"order", "in which order on the wire", "backward", infos_of(order_parts())},
      {"local", "what every worker computes by itself", "local", {local_part()}, false},
  };
  return all;
}

const Axis& composition_axis(const std::string& name) {
  const Axis* axis = find_row(composition_axes(), name);
  invariant(axis != nullptr, "the axes are those of composition_axes()");
  return *axis;
}

const PartInfo& chosen_part(const Axis& axis, const Options& table) {
  const auto name = table.items.find("name");
  const auto* text = name == table.items.end() ? nullptr : std::get_if<std::string>(&name->second.value);
  const PartInfo* part = text ? find_row(axis.parts, *text) : nullptr;
  return part ? *part : *find_row(axis.parts, axis.usual);
}

void check_part(const Axis& axis, OptionReader& table) {
  const PartInfo* part = &axis.parts.front();
  if (axis.named) {
    table.require("name", fmt::format("one of {}", fmt::join(names_of(axis.parts), ", ")));
    part = &chosen_row(axis.parts, table, axis.usual);
    if (table.has("name") && !find_row(axis.parts, table.text("name", ""))) return;  // its settings mean nothing
  }
  for (const Setting& setting : part->settings) table.ignore(setting.name);
  refuse_moved_settings(table);
  table.done();
}

void refuse_moved_settings(OptionReader& table) {
  if (table.where() != "exchange" && table.where() != "exchange.outer") return;
  for (const char* key : {"tau", "probability", "at_end", "n_push", "n_fetch", "warm_start", "tau_down"}) {
    if (!table.has(key)) continue;
    table.problem(key, fmt::format("is now when.{}: when workers exchange has a table of its own, [when]", key));
    table.ignore(key);
  }
}

}  // namespace echelon
