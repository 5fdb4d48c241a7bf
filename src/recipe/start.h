#pragma once
// What the weights begin with, as a recipe says it:
//
//   [model]
//   init = "runs/a"                      # a run (its best checkpoint), a checkpoint's folder, or a safetensors file
//
//   [model.init]                         # the same with more to say
//   from = "resnet18.safetensors"
//   load = ["layer*"]                    # only these (default: all)
//   skip = ["fc"]                        # but not these: a new head
//   rename = { "backbone.*" = "*" }      # the source's names -> the network's
//   sha256 = "..."                       # of the source's weights; a resolved recipe has it
//
// Reading it touches no file; run/training/initial_weights.h loads.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/options.h"

namespace echelon {

struct StartSpec {
  std::string from, sha256;
  std::vector<std::string> load, skip;  // patterns of the network's names (base/glob.h)
  std::vector<std::pair<std::string, std::string>> rename;
};

// None if the table [model] does not have `init`.
std::optional<StartSpec> read_start(OptionReader& model);

// The spec as the table that a resolved recipe has, at the place where the recipe said it.
Option to_option(const StartSpec& spec, const Place& place);

// What of it decides about the weights: everything but where the source lies. For fingerprints.
std::string fingerprint_text(const StartSpec& spec);

}  // namespace echelon
