// `echelon completion`: a bash script that completes verbs and flags. Made from the command line's own description, so
// it is never out of date. (zsh reads it after `autoload bashcompinit && bashcompinit`.)

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/verbs.h"

namespace echelon::cli {

namespace {

// "verb part" -> the words that may follow it.
void collect(const CLI::App& app, const std::string& path, std::vector<std::pair<std::string, std::string>>& rows) {
  std::string words;
  for (const CLI::App* sub : app.get_subcommands({})) words += sub->get_name() + " ";
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) words += "--" + name + " ";
  rows.emplace_back(path, words);
  for (const CLI::App* sub : app.get_subcommands({}))
    collect(*sub, path.empty() ? sub->get_name() : path + " " + sub->get_name(), rows);
}

}  // namespace

void add_completion(CLI::App& program) {
  CLI::App* verb = program.add_subcommand("completion", "Print a bash completion script");
  auto json = std::make_shared<bool>(false);
  verb->add_flag("--json", *json, "Print the words as a JSON object instead");
  verb->footer(
      "Example:\n  source <(echelon completion)\nFor ever:\n"
      "  echelon completion > ~/.local/share/bash-completion/completions/echelon");
  verb->callback([&program, json] {
    std::vector<std::pair<std::string, std::string>> rows;
    collect(program, "", rows);
    if (*json) {
      nlohmann::ordered_json all;
      for (const auto& [path, words] : rows) all[path] = words;
      fmt::print("{}\n", all.dump());
      return;
    }
    fmt::print(
        "_echelon() {{\n  local cur=${{COMP_WORDS[COMP_CWORD]}} path=\"\" words=\"\" i\n"
        "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
        "    [[ ${{COMP_WORDS[i]}} == -* ]] || path=\"${{path:+$path }}${{COMP_WORDS[i]}}\"\n  done\n"
        "  while :; do\n    case \"$path\" in\n");
    for (const auto& [path, words] : rows) fmt::print("      \"{}\") words=\"{}\"; break ;;\n", path, words);
    fmt::print(
        "      *\" \"*) path=\"${{path% *}}\" ;;\n      *) path=\"\" ;;\n    esac\n  done\n"
        "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
        "  [[ $cur == -* ]] || COMPREPLY+=($(compgen -f -- \"$cur\"))\n}}\ncomplete -o filenames -F _echelon "
        "echelon\n");
  });
}

}  // namespace echelon::cli
