#pragma once
// What `echelon init` proposes for data of some shape.

#include <string>
#include <vector>

#include "base/options.h"
#include "data/dataset.h"
#include "world/os/disk.h"

namespace echelon {

struct InitChoice {
  std::string model;   // the lines of [model] below its name
  std::string name;    // of the model
  std::string others;  // that fit too
  std::string optim;   // the lines of [optim]
  std::int64_t epochs = 10, batch = 64;
  std::vector<std::string> transforms = {};  // lines of the list
};

// Pictures of mixed sizes are brought to one, the usual one, and grey ones are read as such: the recipe says so.
void say_size(Disk& disk, Options& data, const data::Dataset& pictures);

// For a table (info.table). Small tables are trained for more epochs, so that there are enough steps.
InitChoice choice_for_table(const data::DatasetInfo& info);

// The comments on a table in its recipe's [data]: how it was read, its columns, and keys that one may want to set.
std::string comments_on_table(const data::DatasetInfo& info);

}  // namespace echelon
