#pragma once
// `echelon runs show` and `runs compare`, for verbs that end with them.

#include <string>
#include <vector>

namespace echelon::cli {

// One run in detail, or several beside each other: what differed, results, curves (also as a file `svg`, unless empty).
// `names` are folders, or names in `root`. BadInput that names every one that is no run.
void show_runs(const std::string& root, const std::vector<std::string>& names, const std::string& svg, bool json);

}  // namespace echelon::cli
