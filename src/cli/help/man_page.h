#pragma once
// Manual pages (man(7)) out of the command line's own description: the same words as --help.

#include <string>
#include <vector>

#include "cli/flags.h"

namespace echelon::cli {

struct ManPage {
  std::string name;  // "echelon-train"; the file is NAME.1
  std::string text;
};

// That of the program, then one for each verb, with all parts of the verb in it.
std::vector<ManPage> man_pages(Verb program);

}  // namespace echelon::cli
