// `echelon completion`: a script that completes verbs, flags and names in bash, zsh or fish. Made from the command
// line's own description, so it is never out of date.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/help/completion_words.h"
#include "cli/verbs.h"

namespace echelon::cli {

void add_completion(Verb program) {
  const Verb verb = program.add_subcommand("completion", "Print a completion script for bash, zsh or fish");
  struct Settings {
    std::string shell = "bash";
    bool json = false;
  };
  auto s = std::make_shared<Settings>();
  verb.add_option("shell", s->shell, "bash, zsh or fish").show_default().one_of({"bash", "zsh", "fish"});
  verb.add_flag("--json", s->json, "Print the words as a JSON object instead");
  verb.footer(
      "Examples:\n"
      "  source <(echelon completion)                  # bash, for now\n"
      "  source <(echelon completion zsh)              # zsh, for now\n"
      "  echelon completion fish | source              # fish, for now\n"
      "For ever:\n"
      "  echelon completion > ~/.local/share/bash-completion/completions/echelon\n"
      "  echelon completion zsh > ~/.zfunc/_echelon    # a folder of $fpath\n"
      "  echelon completion fish > ~/.config/fish/completions/echelon.fish");
  verb.action([program, s] {
    const std::vector<CompletionRow> rows = completion_rows(program);
    if (s->json) {
      nlohmann::ordered_json all;
      for (const CompletionRow& row : rows) {
        std::string words;
        for (const CompletionWord& w : row.words) words += w.word + " ";
        all[row.path] = words;
      }
      fmt::print("{}\n", all.dump());
      return;
    }
    fmt::print("{}", s->shell == "zsh"    ? zsh_completion(rows)
                     : s->shell == "fish" ? fish_completion(rows)
                                          : bash_completion(rows));
  });
}

}  // namespace echelon::cli
