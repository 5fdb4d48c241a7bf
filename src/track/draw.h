#pragma once
// Small pictures made of characters: a confusion matrix, grey images. Pure functions; `colour` says whether the
// terminal understands colour sequences.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace echelon {

// Rows are what it is, columns what was said; the share that was right stands beside each row. Counts are shaded by
// their share of the row. If that is too wide for `columns`, the shades alone; if that too, the commonest mistakes.
std::string draw_confusion(std::span<const std::int64_t> counts, const std::vector<std::string>& classes, int columns,
                           bool colour);

// A grey image (row-major, 0 black to 255 white), two pixels above each other in one character. Lines without newline.
std::vector<std::string> draw_image(std::span<const std::uint8_t> pixels, int width, int height, bool colour);

// Pictures beside each other, each under its caption, as many in a row as fit.
struct Picture {
  std::string caption;
  std::vector<std::string> lines;
};
std::string side_by_side(std::span<const Picture> pictures, int columns);

}  // namespace echelon
