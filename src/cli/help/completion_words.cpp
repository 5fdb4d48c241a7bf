#include "cli/help/completion_words.h"

#include "data/files/catalog.h"
#include "models/zoo.h"
#include "recipe/system_file.h"

namespace echelon::cli {

namespace {

void add_names(const std::string& argument, CompletionRow& row) {
  const bool model = row.path.starts_with("models"), system = row.path.starts_with("systems");
  if (system)
    for (const std::string& s : system_names(*make_real_disk())) row.words.push_back({s, "system"});
  if (model)
    for (const models::Entry& m : models::zoo()) row.words.push_back({std::string(m.name), "network"});
  if (!model && !system && (argument == "name" || argument == "data"))
    for (const data::CatalogEntry& d : data::catalog()) row.words.push_back({d.name, "data set"});
  row.runs = row.runs || argument == "run" || argument == "runs";
  row.files = row.files || argument != "name" || system;
}

void collect(Verb verb, const std::string& path, std::vector<CompletionRow>& rows) {
  CompletionRow row{.path = path, .words = {}};
  for (const Verb sub : verb.subcommands()) row.words.push_back({sub.name(), sub.about()});
  for (const Flag flag : verb.flags()) {
    for (const std::string& name : flag.long_names()) row.words.push_back({name, flag.about()});
    if (flag.is_positional()) add_names(flag.name(), row);
  }
  rows.push_back(std::move(row));
  for (const Verb sub : verb.subcommands()) collect(sub, path.empty() ? sub.name() : path + " " + sub.name(), rows);
}

}  // namespace

std::vector<CompletionRow> completion_rows(Verb program) {
  std::vector<CompletionRow> rows;
  collect(program, "", rows);
  return rows;
}

}  // namespace echelon::cli
