#pragma once
// What all pictures that are drawn as SVG have in common: fonts, colours for light and dark ground, a title.

#include <string>
#include <string_view>

namespace echelon {

std::string svg_escaped(std::string_view text);

// The beginning of a picture: its ground, and its title (which may be empty) at `left`. It ends with "</svg>". Classes:
// t the title, l text as important as it (a legend), g lines of a grid, a lines of an axis; other text is quiet.
std::string svg_begin(int width, int height, std::string_view title, double left);

}  // namespace echelon
