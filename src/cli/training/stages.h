#pragma once
// `echelon train --stages NAME`: what changes while a run goes on, decided beforehand. recipes/stages/NAME.toml is one:
//
//   title, paper, about, program, deviates    texts for people; each may be left out
//   example                                   what to train with it: a recipe and flags
//   [[stage]]                                 one or more, in the order of their steps
//   at_epoch or at_step                       when it begins
//   workers, system, codec, plan, rate        what is another from then on, one or more of them
//   servers                                   the same: so many; of several each is tried for `steps` steps, and from
//                                             then on there are as many as were the quickest
//
// A stage with several of these makes its changes after as many steps, one after each.

#include <string>
#include <vector>

#include "recipe/prepare.h"
#include "track/journal.h"
#include "world/os/disk.h"

namespace echelon::cli {

struct Stages {
  std::string name, title, paper, about, program, deviates, example;
  std::vector<JournalLine> changes;

  std::string in_words() const;  // for people: what it is, its program, and what happens when
};

// A name or a file (NAME.toml). BadInput with all problems.
Stages read_stages(Disk& disk, const std::string& name_or_path, const PreparedRun& prepared);

}  // namespace echelon::cli
