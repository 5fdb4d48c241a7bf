#pragma once
// A run as one HTML file: result, curves (as SVG, drawn as `runs show --svg` draws them), confusion matrix, recipe. No
// script, nothing loaded from elsewhere: it opens anywhere, for ever. Everything of the run is escaped.

#include <string>

#include "cli/runs/run_facts.h"

namespace echelon::cli {

std::string run_html(Disk& disk, const RunFacts& facts);
std::string html_escaped(std::string_view text);

}  // namespace echelon::cli
