#pragma once
// Patterns for the names of weights: `*` stands for any characters, dots included, `?` for one. A pattern also fits
// what lies below it: "conv1" fits "conv1.weight". Pure functions.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace echelon {

bool fits(std::string_view pattern, std::string_view name);
// The same for a layer wherever it lies: "conv*" fits "block3.conv2.weight" too. A dot at the beginning ties a pattern
// to the outermost layers: ".conv1" fits "conv1.weight" alone.
bool fits_layer(std::string_view pattern, std::string_view name);
bool fits_any(const std::vector<std::string>& patterns, std::string_view name);

// The patterns that fit none of the names.
std::vector<std::string> fitting_none(const std::vector<std::string>& patterns, const std::vector<std::string>& names);

// `name` with what the stars of `from` stand for put in the place of those of `to`, in order: "features.0.weight" from
// "features.0.*" to "conv1.*" is "conv1.weight". None if `from` does not fit. Both have as many stars.
std::optional<std::string> renamed(std::string_view name, std::string_view from, std::string_view to);

}  // namespace echelon
