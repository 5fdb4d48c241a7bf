#pragma once
// A plan as a file: the keys of plan/spec.h, and for a published one what it is, in words. recipes/plans/NAME.toml is
// one.
//
//   title, paper, about, program, deviates    texts for people; each may be left out
//   example                                   what to train with it: a recipe and flags, for a model that it fits
//   the keys of plan/spec.h                   the plan
//
// The file comes from outside: its size is bounded before it is read. No state; thread-safe.

#include <string>
#include <vector>

#include "base/options.h"
#include "plan/spec.h"
#include "world/os/disk.h"

namespace echelon {

struct PlanFile {
  std::string path, name;  // the name is the file's, without .toml
  std::string title = {}, paper = {}, about = {}, program = {};
  std::string deviates = {};  // what the published one does and this one does not; empty: nothing
  std::string example = {};   // "recipes/demo.toml --workers 2 --set model.slices=2"
  PlanSpec plan = {};
};

inline constexpr std::size_t most_plan_bytes = 64 << 10;

// Problems are added; the result is complete in any case. BadInput only for what is no TOML or too large.
PlanFile parse_plan(std::string_view text, const std::string& file, Problems& problems);

// ./recipes/plans, and those that belong to the program; the first that has NAME.toml.
std::vector<std::string> usual_plan_places();
std::vector<std::string> plan_names(Disk& disk);  // sorted

// A name, or the path of a file (it ends in .toml). BadInput with the nearest name if there is none.
PlanFile read_plan_file(Disk& disk, const std::string& name_or_path, Problems& problems);

}  // namespace echelon
