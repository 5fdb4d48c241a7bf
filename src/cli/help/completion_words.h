#pragma once
// What may follow each verb on a command line, taken from the command line's own description.

#include <string>
#include <vector>

#include "cli/flags.h"

namespace echelon::cli {

struct CompletionWord {
  std::string word, about;  // about: one line, may be empty
};

struct CompletionRow {
  std::string path;                   // "data get"; empty for the program itself
  std::vector<CompletionWord> words;  // parts of the verb, flags, names that the program knows
  bool runs = false;                  // the names of runs
  bool files = false;
};

std::vector<CompletionRow> completion_rows(Verb program);

std::string bash_completion(const std::vector<CompletionRow>& rows);
std::string zsh_completion(const std::vector<CompletionRow>& rows);
std::string fish_completion(const std::vector<CompletionRow>& rows);

}  // namespace echelon::cli
