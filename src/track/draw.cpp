#include "track/draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"

namespace echelon {

namespace {

// Confusion counts with what is asked of them.
class Confusion {
 public:
  Confusion(std::span<const std::int64_t> counts, const std::vector<std::string>& classes)
      : counts_(counts), classes_(classes), n_(classes.size()) {}

  std::size_t size() const { return n_; }
  const std::string& name(std::size_t i) const { return classes_[i]; }
  std::int64_t at(std::size_t row, std::size_t column) const { return counts_[row * n_ + column]; }
  std::int64_t total(std::size_t row) const {
    std::int64_t sum = 0;
    for (std::size_t c = 0; c < n_; ++c) sum += at(row, c);
    return sum;
  }
  double share(std::size_t row, std::size_t column) const {
    const auto all = total(row);
    return all > 0 ? static_cast<double>(at(row, column)) / static_cast<double>(all) : 0;
  }
  std::string right(std::size_t row) const {
    return total(row) > 0 ? fmt::format("{:>6.2f} %", share(row, row) * 100) : "       -";
  }
  int widest_name() const {
    int width = 1;
    for (const auto& c : classes_) width = std::max(width, display_width(c));
    return width;
  }

 private:
  std::span<const std::int64_t> counts_;
  const std::vector<std::string>& classes_;
  std::size_t n_;
};

// Green on the diagonal, red beside it, the more the stronger. Small shares must be visible: square root.
std::string shaded(const std::string& text, double share, bool right) {
  if (share <= 0) return fmt::format("\033[90m{}\033[0m", text);
  constexpr std::array green{22, 28, 34, 40}, red{52, 88, 124, 160};  // of the 256 colours, dark to bright
  const auto level = std::min<std::size_t>(3, static_cast<std::size_t>(std::sqrt(share) * 4));
  return fmt::format("\033[48;5;{};97m{}\033[0m", right ? green[level] : red[level], text);
}

std::string padded_left(const std::string& text, int columns) {
  const int width = display_width(text);
  return width >= columns ? fit(text, columns) : std::string(static_cast<std::size_t>(columns - width), ' ') + text;
}

// What rows and columns are, above a matrix.
constexpr const char* axes_of_confusion = "true class ↓  predicted →\n";

std::string as_table(const Confusion& m, int name_width, int cell, bool colour) {
  std::string text = axes_of_confusion + std::string(static_cast<std::size_t>(name_width), ' ') + " ";
  for (std::size_t c = 0; c < m.size(); ++c) text += padded_left(m.name(c), cell - 1) + " ";
  text += "    right\n";
  for (std::size_t r = 0; r < m.size(); ++r) {
    text += padded_left(m.name(r), name_width) + " ";
    for (std::size_t c = 0; c < m.size(); ++c) {
      const auto count = m.at(r, c);
      const std::string number = padded_left(count == 0 ? "·" : fmt::format("{}", count), cell - 1) + " ";
      text += colour ? shaded(number, m.share(r, c), r == c) : number;
    }
    text += fmt::format(" {}\n", m.right(r));
  }
  return text;
}

std::string as_shades(const Confusion& m, int name_width, bool colour) {
  constexpr std::array shades{"··", "░░", "▒▒", "▓▓", "██"};
  std::string text = axes_of_confusion;
  for (std::size_t r = 0; r < m.size(); ++r) {
    text += padded_left(m.name(r), name_width) + " ";
    for (std::size_t c = 0; c < m.size(); ++c) {
      const double share = m.share(r, c);
      const auto level = share <= 0 ? 0 : 1 + std::min<std::size_t>(3, static_cast<std::size_t>(std::sqrt(share) * 4));
      text += colour ? shaded(share <= 0 ? "··" : "  ", share, r == c) : shades[level];
    }
    text += fmt::format(" {}\n", m.right(r));
  }
  return text;
}

std::string as_list(const Confusion& m, int columns) {
  struct Mistake {
    std::size_t is, said;
  };
  std::vector<Mistake> mistakes;
  for (std::size_t r = 0; r < m.size(); ++r)
    for (std::size_t c = 0; c < m.size(); ++c)
      if (r != c && m.at(r, c) > 0) mistakes.push_back({r, c});
  std::ranges::stable_sort(mistakes,
                           [&](const Mistake& a, const Mistake& b) { return m.at(a.is, a.said) > m.at(b.is, b.said); });
  if (mistakes.size() > 15) mistakes.resize(15);
  std::string text = mistakes.empty() ? "no mistakes\n" : "the commonest mistakes:\n";
  for (const auto& [is, said] : mistakes) {
    std::string line =
        fit(fmt::format("{:>6} of '{}' taken for '{}'", m.at(is, said), m.name(is), m.name(said)), columns);
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace

std::string draw_confusion(std::span<const std::int64_t> counts, const std::vector<std::string>& classes, int columns,
                           bool colour) {
  const Confusion m(counts, classes);
  const int n = static_cast<int>(m.size()), name_width = std::min(m.widest_name(), 16);
  constexpr int margin = 12;  // the share that was right
  const auto largest = counts.empty() ? 0 : std::ranges::max(counts);
  const int digits = static_cast<int>(fmt::formatted_size("{}", largest));
  const auto cell_for = [&](int name) { return std::max(digits, name) + 1; };
  int cell = cell_for(name_width);  // whole names where there is room for them
  if (name_width + n * cell + margin > columns) cell = cell_for(std::min(name_width, 6));
  if (name_width + n * cell + margin <= columns) return as_table(m, name_width, cell, colour);
  if (name_width + n * 2 + margin <= columns) return as_shades(m, name_width, colour);
  return as_list(m, columns);
}

std::vector<std::string> draw_image(std::span<const std::uint8_t> pixels, int width, int height, bool colour) {
  constexpr std::string_view ramp = " .:-=+*#%@";
  const auto at = [&](int x, int y) -> int {
    return y < height
               ? pixels[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)]
               : 0;
  };
  const auto grey = [](int value) { return 232 + value * 23 / 255; };  // the greys of the 256 colours
  std::vector<std::string> lines;
  for (int y = 0; y < height; y += 2) {
    std::string line;
    int upper = -1, lower = -1;  // colours that are switched on
    for (int x = 0; x < width; ++x) {
      if (!colour) {
        line += ramp[static_cast<std::size_t>((at(x, y) + at(x, y + 1)) * 9 / 510)];
        continue;
      }
      const int up = grey(at(x, y)), low = grey(at(x, y + 1));
      if (up != upper || low != lower) line += fmt::format("\033[38;5;{};48;5;{}m", up, low);
      upper = up, lower = low;
      line += "▀";
    }
    lines.push_back(colour && width > 0 ? line + "\033[0m" : line);
  }
  return lines;
}

std::string side_by_side(std::span<const Picture> pictures, int columns) {
  constexpr int gap = 2;
  const auto width_of = [](const Picture& p) {
    int width = display_width(p.caption);
    for (const auto& line : p.lines) width = std::max(width, display_width(line));
    return width;
  };
  std::string text;
  while (!pictures.empty()) {
    std::size_t count = 0, height = 0;
    int used = 0;
    while (count < pictures.size() && (count == 0 || used + gap + width_of(pictures[count]) <= columns)) {
      used += (count ? gap : 0) + width_of(pictures[count]);
      height = std::max(height, pictures[count].lines.size());
      ++count;
    }
    for (std::size_t row = 0; row <= height; ++row) {  // row 0: captions
      std::string line;
      for (std::size_t i = 0; i < count; ++i) {
        const auto& p = pictures[i];
        if (i) line += std::string(gap, ' ');
        line += fit(row == 0 ? p.caption : row <= p.lines.size() ? p.lines[row - 1] : "", width_of(p));
      }
      line.resize(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
    pictures = pictures.subspan(count);
    if (!pictures.empty()) text += "\n";
  }
  return text;
}

}  // namespace echelon
