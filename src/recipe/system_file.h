#pragma once
// A published data-parallel system as data: what it is, in words, and the parts that it is composed of
// (parallel/axes.h). recipes/systems/NAME.toml is one; docs/systems.md lists the keys:
//
//   title, paper, section, about, worker, server, use_when, avoid_when      texts for people
//   [taxonomy]   parallelism, centralised, scheduling, exchange, topology, encoding
//   [rule] [exchange] [sync] [codec] [order]    each a `name` and that part's settings; the last three may be left out
//   [when]       after which steps workers exchange; after each if it is left out
//   [local]      what every worker computes by itself: [local.optim] its update rule, [local.model.quantise] its
//   numbers deviates     what the published system does and this one does not, or does otherwise; left out where it is
//   the same
//   row, surveys what surveys of the field call it, and which of them do (survey_names); left out where none does
//   epochs       the figure of docs/systems.md: LeNet-5 on MNIST, four workers, to 98.5 %
//
// The file comes from outside: its size is bounded before it is read. No state; thread-safe.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/options.h"
#include "world/os/disk.h"

namespace echelon {

struct SystemFile {
  std::string path, name;  // the name is the file's, without .toml
  std::string title, paper, section;
  std::string about, worker, server, use_when, avoid_when;  // server is empty where there is none
  std::string deviates;                                     // empty: it does not
  std::string row;                                          // empty: no survey has it
  std::vector<int> surveys;                                 // numbers of survey_names()
  int epochs = 0;                                           // 0: not measured
  struct Taxonomy {
    std::string parallelism, centralised, scheduling, exchange, topology, encoding;
  } taxonomy;
  Options rule, exchange, when, sync, codec, order;  // empty ones: the axis' default
  Options local;                                     // over a recipe's tables
};

// The axes in their order, with a system's tables for them.
std::vector<std::pair<std::string, const Options*>> axes(const SystemFile& system);

// The surveys whose systems are here; a system's file names them by number, from 0.
const std::vector<std::string>& survey_names();

inline constexpr std::size_t most_system_bytes = 64 << 10;

// Problems are added; the result is complete in any case. BadInput only for what is no TOML or too large.
SystemFile parse_system(std::string_view text, const std::string& file, Problems& problems);

// Folders in which systems are looked for by name; the first that has NAME.toml.
using SystemPlaces = std::vector<std::string>;
SystemPlaces usual_system_places();  // ./recipes/systems, and those that belong to the program

std::vector<std::string> system_names(Disk& disk, const SystemPlaces& places = usual_system_places());  // sorted

// The file that `name_or_path` means: a name, or the path of a file (it ends in .toml). BadInput with the nearest name
// if there is none.
std::string find_system(Disk& disk, const std::string& name_or_path,
                        const SystemPlaces& places = usual_system_places());

// Finds and parses it. BadInput with all problems at once.
SystemFile read_system(Disk& disk, const std::string& name_or_path, const SystemPlaces& places = usual_system_places());

}  // namespace echelon
