#pragma once
// What this program is: for --version, `doctor`, and reports of faults.

#include <string>

namespace echelon::cli {

std::string build_facts();   // "echelon 0.1.0, g++ 12.2.0, release, ..."
std::string version_text();  // "echelon 0.1.0", the build, and what this CPU has: a few lines

}  // namespace echelon::cli
