#pragma once
// The kinds of data by name, and how the options of each are read: the table behind data/open.h. A new format needs a
// line in kinds.cpp and nothing else.

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "data/open.h"

namespace echelon::data {

using OpenSplit = std::function<DatasetPtr(Disk& disk, const std::string& split)>;
// Where the data are; known when they are opened, because a named set is looked for then.
using DataPath = std::function<std::string(Disk& disk)>;

// For a file or files without a part for testing: training on it is fine, testing needs `holdout`. BadInput then.
void only_train(const std::string& split, const std::string& what);

std::vector<std::string> kind_names();      // the formats, then the known sets
bool cuts_itself(const std::string& kind);  // whether it reads `validation` and `test` itself: a text's stretches
// Reads the options of `kind` (one of kind_names) from the table; files are touched when the result is called.
OpenSplit read_kind(const std::string& kind, OptionReader& table, const DataPlaces& places);

constexpr std::int64_t most_samples = 1'000'000'000'000;  // that are made on the fly: an epoch's steps can be counted

// A key whose words each stand for a value; the first is the default.
template <typename E>
E pick(OptionReader& table, const std::string& key, const std::vector<std::pair<std::string, E>>& choices) {
  std::vector<std::string> names;
  for (const auto& [name, value] : choices) names.push_back(name);
  const std::string chosen = table.choice(key, names.front(), names);
  return std::ranges::find(choices, chosen, [](const auto& c) { return c.first; })->second;
}

// One table of the list `transform`. The result makes the transform, or its calm twin, or null where there is none.
std::function<TransformPtr(bool augment)> read_transform(OptionReader& table);

}  // namespace echelon::data
