// The scripts that three shells complete command lines with. All of them look for the longest verb that the words so
// far begin with, and offer what may follow it.

#include <fmt/format.h>

#include "cli/help/completion_words.h"

namespace echelon::cli {

namespace {

// In single quotes, as bash, zsh and fish read them. `also`: characters that need a backslash within the text.
std::string single_quoted(const std::string& text, bool fish) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'')
      out += fish ? "\\'" : "'\\''";
    else if (c == '\\' && fish)
      out += "\\\\";
    else if (c != '\n')
      out += c;
    else
      out += ' ';
  }
  return out + "'";
}

// `_describe` of zsh takes WORD:ABOUT.
std::string described(const CompletionWord& w) {
  std::string word;
  for (const char c : w.word) word += (c == ':' || c == '\\' ? std::string(1, '\\') : "") + c;
  return single_quoted(w.about.empty() ? word : word + ":" + w.about, false);
}

}  // namespace

std::string bash_completion(const std::vector<CompletionRow>& rows) {
  std::string out =
      "_echelon() {\n  local cur=${COMP_WORDS[COMP_CWORD]} path=\"\" words=\"\" files=\"\" i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    [[ ${COMP_WORDS[i]} == -* ]] || path=\"${path:+$path }${COMP_WORDS[i]}\"\n  done\n"
      "  while :; do\n    case \"$path\" in\n";
  for (const CompletionRow& row : rows) {
    std::string words;
    for (const CompletionWord& w : row.words) words += w.word + " ";
    out += fmt::format("      \"{}\") words=\"{}{}\"; files={}; break ;;\n", row.path, words,
                       row.runs ? "$(ls runs 2>/dev/null)" : "", row.files ? "yes" : "");
  }
  return out +
         "      *\" \"*) path=\"${path% *}\" ;;\n      *) path=\"\" ;;\n    esac\n  done\n"
         "  [[ ${COMP_WORDS[COMP_CWORD-1]} == -* ]] && files=yes  # what a flag asks for may be a file\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
         "  [[ $cur == -* || -z $files ]] || COMPREPLY+=($(compgen -f -- \"$cur\"))\n}\n"
         "complete -o filenames -F _echelon echelon\n";
}

std::string zsh_completion(const std::vector<CompletionRow>& rows) {
  std::string out =
      "#compdef echelon\n"
      "_echelon() {\n  local path_so_far=\"\" files=\"\" i\n  local -a list\n"
      "  for ((i = 2; i < CURRENT; i++)); do\n"
      "    [[ ${words[i]} == -* ]] || path_so_far=\"${path_so_far:+$path_so_far }${words[i]}\"\n  done\n"
      "  while :; do\n    case \"$path_so_far\" in\n";
  for (const CompletionRow& row : rows) {
    out += fmt::format("      \"{}\")\n        list=(", row.path);
    for (const CompletionWord& w : row.words) out += "\n          " + described(w);
    if (row.runs) out += "\n          runs/*(N:t)";
    out += fmt::format(")\n        files={}\n        break ;;\n", row.files ? "yes" : "''");
  }
  return out +
         "      *\" \"*) path_so_far=\"${path_so_far% *}\" ;;\n      *) path_so_far=\"\" ;;\n    esac\n  done\n"
         "  [[ ${words[CURRENT-1]} == -* ]] && files=yes  # what a flag asks for may be a file\n"
         "  _describe -t words echelon list\n"
         "  [[ ${words[CURRENT]} == -* || -z $files ]] || _files\n}\n"
         "# As a file named _echelon in $fpath it is called; sourced, it makes itself known.\n"
         "if [[ ${funcstack[1]} == _echelon ]]; then _echelon \"$@\"; else compdef _echelon echelon; fi\n";
}

std::string fish_completion(const std::vector<CompletionRow>& rows) {
  std::string out = "function __echelon_at\n  set -l known";
  for (const CompletionRow& row : rows)
    if (!row.path.empty()) out += " " + single_quoted(row.path, true);
  out +=
      "\n  set -l path\n  for word in (commandline -opc)[2..-1]\n"
      "    string match -q -- '-*' $word; or set -a path $word\n  end\n"
      "  while set -q path[1]; and not contains -- \"$path\" $known\n    set -e path[-1]\n  end\n"
      "  test \"$path\" = \"$argv\"\nend\n";
  for (const CompletionRow& row : rows) {
    const std::string line = fmt::format("complete -c echelon -n \"__echelon_at {}\"", single_quoted(row.path, true));
    out += line + (row.files ? " -F\n" : " -f\n");
    for (const CompletionWord& w : row.words) {
      const std::string about = w.about.empty() ? "" : " -d " + single_quoted(w.about, true);
      if (w.word.starts_with("--"))
        out += fmt::format("{} -l {}{}\n", line, w.word.substr(2), about);
      else
        out += fmt::format("{} -a {}{}\n", line, single_quoted(w.word, true), about);
    }
    if (row.runs) out += line + " -a '(ls runs 2>/dev/null)' -d run\n";
  }
  return out;
}

}  // namespace echelon::cli
