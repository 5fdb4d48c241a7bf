#pragma once
// Lines that are too long for a terminal, broken where they may be. Pure, but for for_terminal.

#include <string>
#include <string_view>

namespace echelon::cli {

// Lines of `text` that are longer than `columns` go on behind `hanging` blanks: broken where two blanks or more stand
// if that is enough, else between words. Shorter lines stay as they are. A word that is too long has a line of its own.
std::string folded(std::string_view text, int columns, int hanging);

// The same for the terminal that `descriptor` is; anything else gets `text` as it is.
std::string for_terminal(int descriptor, std::string text, int hanging = 2);

}  // namespace echelon::cli
