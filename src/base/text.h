#pragma once
// Words for people: the word they probably meant, numbers and times they can read at a glance, and text that fits into
// so many columns of a terminal. Pure functions, thread-safe.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace echelon {

// The number of single-letter insertions, deletions, replacements and swaps of neighbours between two words.
int edit_distance(std::string_view a, std::string_view b);

// The candidate that `word` most likely was meant to be; none if nothing is near enough to be worth suggesting.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

// "; did you mean 'momentum'?", or nothing: to be put behind a complaint about `word`.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

std::string human_count(double number);      // "950", "1.2 k", "61.7 M": three digits at most
std::string human_bytes(double bytes);       // "512 B", "3.4 MiB"
std::string human_duration(double seconds);  // "0.4 ms", "8.3 s", "1 m 12 s", "3 h 05 m", "2 d 4 h"

// Columns that a UTF-8 text takes on a terminal. Characters are taken as one column wide, those of East Asian scripts
// and emoji as two, combining marks and terminal colour sequences as none.
int display_width(std::string_view text);

// `text` cut (with an ellipsis) or padded with blanks to exactly `columns`. Colour sequences are kept whole.
std::string fit(std::string_view text, int columns);

// `text` in lines of at most `columns`, broken between words, each line behind `indent` blanks and those after the
// first behind `hanging` more. Ends with a newline. A word that is too long has a line of its own.
std::string wrapped(std::string_view text, int columns, int indent, int hanging = 0);

// One word of a shell's command line: in quotes where it needs them.
std::string shell_quoted(std::string_view word);

// The parts of `text` between separators; one more than there are separators. They refer to `text`.
std::vector<std::string_view> split(std::string_view text, char separator);

// A code point as UTF-8.
std::string utf8(char32_t code_point);

}  // namespace echelon
