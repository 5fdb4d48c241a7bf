#pragma once
// The parts that systems are composed of, in words: for each of the five axes the names that its table can have, and
// the settings of each with their defaults. What a part does is in parallel/ and codec/, which read the same tables and
// check values and combinations; here is what a system file may say and what `echelon systems show` explains.

#include <string>
#include <vector>

#include "base/options.h"

namespace echelon {

struct Knob {
  std::string key;
  std::string usual;  // the default as TOML writes it, or in words where it is derived
  std::string about;
};

struct Part {
  std::string name, about;
  std::vector<Knob> knobs;
};

struct SystemAxis {
  std::string name;   // "rule"
  std::string about;  // what it decides
  std::string usual;  // the part that is taken where nothing is said
  std::vector<Part> parts;
};

const std::vector<SystemAxis>& system_axes();
const SystemAxis& system_axis(const std::string& name);                        // that exists
const Part* find_part(const std::string& axis, const std::string& part_name);  // nullptr if there is none

// The part that a table of that axis names; the usual one if it names none or an unknown one.
const Part& part_of(const std::string& axis, const Options& table);

// Adds a problem for every unknown name and setting of a system's table.
void check_part(const std::string& axis, OptionReader& table);

}  // namespace echelon
