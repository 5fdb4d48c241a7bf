#pragma once
// From a recipe's file to one tree of options: the files that it extends below it, the command line on top.
//
//   extends = "base.toml"    first line of a recipe: begin with that one (a path beside this file), then change it
//   --set optim.lr=0.05      on the command line: change one key; lists as [1, 2]; a word needs no quotes
//
// Tables are merged key by key, lists are replaced. Where a table gets another `name` ([model], [optim], [schedule] and
// a system's tables) or `kind` ([data]), the keys it had under the old one are dropped, because they belonged to
// that; so are keys of [exchange] and [when] that a changed one excludes (tau and probability) or leaves without a
// meaning (the threshold of a filter that is gone). What was dropped is noted. A relative `path` in [data], and what
// [model] begins with (`init`), is looked for beside the file that says it, then where the program was started. A
// graph's file is taken in (recipe/graph_file.h).
//
// A system (--system easgd, or system = "easgd" in the recipe) lies below the recipe with its tables and over it
// with what it says under [local]; --set has the last word. A resolved recipe says composed_from = "easgd" instead: its
// tables are complete, and no file is read again.

#include <string>
#include <vector>

#include "base/options.h"
#include "recipe/system_file.h"
#include "world/os/disk.h"

namespace echelon {

struct LoadedOptions {
  Options tree;                    // without `extends`
  std::vector<std::string> files;  // that were read, the recipe first
  std::vector<std::string> notes;  // what a reader should know: one sentence each
};

// Problems with `extends`, with overrides and with the system are added to `problems`. BadInput for a file that is
// missing, too large or not TOML. `system`: a name or a path; empty: what the recipe says, if anything.
LoadedOptions load_options(Disk& disk, const std::string& path, const std::vector<std::string>& overrides,
                           Problems& problems, const std::string& system = "",
                           const SystemPlaces& systems = usual_system_places());

// The same for a recipe that is no file but the tree itself. `name` stands for the file: in messages, and as the folder
// that relative paths begin at.
LoadedOptions load_options(Disk& disk, Options tree, const std::string& name, const std::vector<std::string>& overrides,
                           Problems& problems, const std::string& system = "",
                           const SystemPlaces& systems = usual_system_places());

// Sets `key` (dotted) in the tree from "key=value"; a malformed one is a problem. Used for --set.
void override_option(Options& tree, const std::string& text, std::vector<std::string>& notes, Problems& problems);

// Puts `top` over `bottom` as described above. Pure.
Options merged(const Options& bottom, const Options& top, std::vector<std::string>& notes);

}  // namespace echelon
