// `echelon completion`: a bash script that completes verbs, flags and names. Made from the command line's own
// description, so it is never out of date. (zsh reads it after `autoload bashcompinit && bashcompinit`.)

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/verbs.h"
#include "data/catalog.h"
#include "models/zoo.h"
#include "recipe/system_file.h"

namespace echelon::cli {

namespace {

// What may follow a verb.
struct Row {
  std::string path;   // "data get"
  std::string words;  // flags, parts of the verb, names that the program knows
  bool runs = false;  // the names of runs
  bool files = false;
};

void add_positional(const std::string& name, Row& row) {
  const bool model = row.path.starts_with("models"), system = row.path.starts_with("systems");
  if (system)
    for (const std::string& s : system_names(*make_real_disk())) row.words += s + " ";
  if (model)
    for (const models::Entry& m : models::zoo()) row.words += fmt::format("{} ", m.name);
  if (!model && !system && (name == "name" || name == "data"))
    for (const data::CatalogEntry& d : data::catalog()) row.words += d.name + " ";
  row.runs = row.runs || name == "run" || name == "runs";
  row.files = row.files || name != "name" || system;
}

void collect(Verb verb, const std::string& path, std::vector<Row>& rows) {
  Row row{.path = path, .words = ""};
  for (const Verb sub : verb.subcommands()) row.words += sub.name() + " ";
  for (const Flag flag : verb.flags()) {
    for (const std::string& name : flag.long_names()) row.words += name + " ";
    if (flag.is_positional()) add_positional(flag.name(), row);
  }
  rows.push_back(std::move(row));
  for (const Verb sub : verb.subcommands()) collect(sub, path.empty() ? sub.name() : path + " " + sub.name(), rows);
}

}  // namespace

void add_completion(Verb program) {
  const Verb verb = program.add_subcommand("completion", "Print a bash completion script");
  auto json = std::make_shared<bool>(false);
  verb.add_flag("--json", *json, "Print the words as a JSON object instead");
  verb.footer(
      "Example:\n  source <(echelon completion)\nFor ever:\n"
      "  echelon completion > ~/.local/share/bash-completion/completions/echelon");
  verb.action([program, json] {
    std::vector<Row> rows;
    collect(program, "", rows);
    if (*json) {
      nlohmann::ordered_json all;
      for (const Row& row : rows) all[row.path] = row.words;
      fmt::print("{}\n", all.dump());
      return;
    }
    fmt::print(
        "_echelon() {{\n  local cur=${{COMP_WORDS[COMP_CWORD]}} path=\"\" words=\"\" files=\"\" i\n"
        "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
        "    [[ ${{COMP_WORDS[i]}} == -* ]] || path=\"${{path:+$path }}${{COMP_WORDS[i]}}\"\n  done\n"
        "  while :; do\n    case \"$path\" in\n");
    for (const Row& row : rows)
      fmt::print("      \"{}\") words=\"{}{}\"; files={}; break ;;\n", row.path, row.words,
                 row.runs ? "$(ls runs 2>/dev/null)" : "", row.files ? "yes" : "");
    fmt::print(
        "      *\" \"*) path=\"${{path% *}}\" ;;\n      *) path=\"\" ;;\n    esac\n  done\n"
        "  [[ ${{COMP_WORDS[COMP_CWORD-1]}} == -* ]] && files=yes  # what a flag asks for may be a file\n"
        "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
        "  [[ $cur == -* || -z $files ]] || COMPREPLY+=($(compgen -f -- \"$cur\"))\n}}\n"
        "complete -o filenames -F _echelon echelon\n");
  });
}

}  // namespace echelon::cli
