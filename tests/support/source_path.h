#pragma once
// Where a file of the project lies. A function, because a macro with a folder's name in it would make the compiler
// cache keep every test once for each folder.

#include <string>

namespace echelon {

std::string source_path(const std::string& path);  // of "docs/recipes.md", for example

}  // namespace echelon
