#include "cli/answers/other_samples.h"

#include <algorithm>

#include "base/error.h"
#include "base/listed.h"
#include "base/text.h"
#include "data/files/catalog.h"
#include "data/vocabulary.h"
#include "world/os/nearest_file.h"

namespace echelon::cli {

namespace {

// How the run's own samples were cut into parts and read; other samples are taken whole, and their format is found.
constexpr const char* of_the_own_data[] = {"validation", "test",  "split",     "time",     "stratify",
                                           "split_seed", "folds", "fold",      "holdout",  "limit",
                                           "limit_test", "path",  "partition", "dirichlet"};
constexpr const char* of_the_own_file[] = {"delimiter", "header", "decimal", "encoding"};

bool knows_classes(const std::string& format) {
  constexpr std::string_view such[] = {"idx", "npy", "npz", "csv"};
  return std::ranges::find(such, format) != std::end(such);
}

Options table_for(const LoadedRun& run, const std::string& what, bool known_set) {
  const data::DatasetInfo& like = run.prepared.plain;
  Options table = run.prepared.recipe.data;
  for (const char* key : of_the_own_data) table.items.erase(key);
  const std::string kind = std::get<std::string>(table.items.at("kind").value);
  const data::CatalogEntry* const entry = data::find_in_catalog(kind);
  const std::string format = entry ? entry->format : kind;
  table.items["kind"].value = known_set ? what : format;
  if (!known_set) table.items["path"].value = what;
  if (like.table) {
    for (const char* key : of_the_own_file) table.items.erase(key);
    table.items["encoder"].value = run.folder.table();
  }
  if (knows_classes(format) && like.classes > 0) {
    table.items["classes"].value = like.classes;
    Option::List names;
    for (const std::string& name : like.class_names) names.push_back({name, {}});
    if (!names.empty()) table.items["class_names"].value = std::move(names);
  }
  if (like.vocabulary) {  // all of the text, once
    for (const char* key : {"vocabulary", "samples", "train_fraction"}) table.items.erase(key);
    table.items["level"].value = std::string(like.vocabulary->level());
    table.items["tokens"].value = run.folder.tokens();
    table.items["train_fraction"].value = 1.0;
    if (like.streams == 0) table.items["windows"].value = std::string("tiled");
  }
  return table;
}

void expect_alike(const LoadedRun& run, const std::string& what, const data::DatasetInfo& other) {
  const data::DatasetInfo& like = run.prepared.plain;
  if (other.fields.size() < like.fields.size())
    bad_input("{}: only the inputs are known of its samples, and not what is right; `echelon predict` answers such",
              what);
  for (std::size_t i = 0; i < like.fields.size(); ++i)
    if (other.fields[i].dtype != like.fields[i].dtype || other.fields[i].bytes() != like.fields[i].bytes())
      bad_input("{}: its samples have {}, and those of {} have {}", what, data::to_string(other.fields[i]),
                run.folder.path, data::to_string(like.fields[i]));
  if (other.class_names != like.class_names)
    bad_input("{}: its classes are {}, and those of {} are {}", what, listed(other.class_names), run.folder.path,
              listed(like.class_names));
}

}  // namespace

data::DatasetPtr open_other_samples(Disk& disk, const LoadedRun& run, const std::string& what) {
  const std::string kind = std::get<std::string>(run.prepared.recipe.data.items.at("kind").value);
  if (kind == "memory" || kind == "synthetic")
    bad_input("--data {}: {} was trained on samples that no file holds (kind \"{}\")", what, run.folder.path, kind);
  const bool known_set = !disk.exists(what) && data::find_in_catalog(what);
  if (!known_set && !disk.exists(what))
    bad_input("{}: there is no such file or folder{}", what, did_you_mean_file(disk, what));
  Problems problems;
  const Options table = table_for(run, what, known_set);
  OptionReader reader(table, problems);
  const data::DataSpec spec = data::read_data_spec(reader);
  problems.throw_if_any(what);
  data::DatasetPtr plain;
  if (!run.prepared.plain.vocabulary) try {
      plain = spec.open_plain(disk, "test");
    } catch (const data::NoSplit&) {  // one file, or a folder without parts
    }
  if (!plain) plain = spec.open_plain(disk, "train");
  expect_alike(run, what, plain->info());
  return spec.transformed(plain, false);
}

}  // namespace echelon::cli
