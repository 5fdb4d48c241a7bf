#pragma once
// The axes of a composition: what a system or a recipe decides about how workers train together, each a table of its
// own in TOML. Every axis lists its parts by their rows (base/part.h); docs/systems.md explains them. No state;
// thread-safe.

#include "base/part.h"

namespace echelon {

struct Axis {
  std::string name;   // also its table's: "rule"
  std::string about;  // what it decides
  std::string usual;  // the part that is taken where nothing is said
  std::vector<PartInfo> parts;
  bool named = true;  // the table chooses a part by its `name`; false: there is only one
};

// rule, exchange, when, sync, codec, order: what Composition is made of; and local: what every worker does by itself,
// which a system may ask of a recipe (its update rule, its number format).
const std::vector<Axis>& composition_axes();
const Axis& composition_axis(const std::string& name);  // that exists

// The part that a table of that axis names; the usual one if it names none or an unknown one.
const PartInfo& chosen_part(const Axis& axis, const Options& table);

// Adds a problem for every unknown name and setting of a system's table.
void check_part(const Axis& axis, OptionReader& table);

// Adds a problem for every setting that is now one of another table, with its new name, and counts it as read.
void refuse_moved_settings(OptionReader& table);

}  // namespace echelon
