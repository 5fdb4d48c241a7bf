#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "base/text.h"
#include "track/curve.h"
#include "track/plot_range.h"

namespace echelon {

namespace {

constexpr std::array colours{36, 33, 35, 32, 31, 34};  // cyan, yellow, magenta, green, red, blue

// A grid of dots, two wide and four high in every character.
class Dots {
 public:
  Dots(int columns, int rows) : columns_(columns), rows_(rows), cells_(static_cast<std::size_t>(columns * rows)) {}

  int width() const { return columns_ * 2; }
  int height() const { return rows_ * 4; }

  void line(int x0, int y0, int x1, int y1, int owner) {  // Bresenham
    const int dx = std::abs(x1 - x0), dy = -std::abs(y1 - y0), sx = x0 < x1 ? 1 : -1, sy = y0 < y1 ? 1 : -1;
    for (int error = dx + dy;;) {
      dot(x0, y0, owner);
      if (x0 == x1 && y0 == y1) return;
      const int twice = 2 * error;
      if (twice >= dy) error += dy, x0 += sx;
      if (twice <= dx) error += dx, y0 += sy;
    }
  }

  std::string row(int row, bool colour, bool letters) const {
    std::string text;
    int current = -1;  // whose colour is switched on
    for (int column = 0; column < columns_; ++column) {
      const Cell& c = cells_[static_cast<std::size_t>(row * columns_ + column)];
      // Where curves run over each other they take turns, so that none hides another.
      const int owner = c.owners.empty() ? 0 : c.owners[static_cast<std::size_t>(row + column) % c.owners.size()];
      if (c.dots != 0 && colour && owner != current) {
        text += fmt::format("\033[{}m", colours[static_cast<std::size_t>(owner) % colours.size()]);
        current = owner;
      }
      text += c.dots == 0 ? " "
              : letters   ? std::string(1, static_cast<char>('a' + owner % 26))
                          : utf8(0x2800u + c.dots);
    }
    return current < 0 ? text : text + "\033[0m";
  }

 private:
  struct Cell {
    unsigned dots = 0;
    std::vector<int> owners = {};  // each once, in the order in which they are drawn
  };
  void dot(int x, int y, int owner) {
    constexpr unsigned bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    if (x < 0 || y < 0 || x >= width() || y >= height()) return;
    Cell& c = cells_[static_cast<std::size_t>(y / 4 * columns_ + x / 2)];
    c.dots |= bits[y % 4][x % 2];
    if (c.owners.empty() || c.owners.back() != owner) c.owners.push_back(owner);
  }
  int columns_, rows_;
  std::vector<Cell> cells_;
};

void draw(Dots& dots, const Series& s, const PlotAxes& axes, bool log_y, int owner) {
  bool connected = false;
  int last_x = 0, last_y = 0;
  for (std::size_t i = 0; i < std::min(s.x.size(), s.y.size()); ++i) {
    if (!is_shown(s.x[i], s.y[i], log_y)) {
      connected = false;
      continue;
    }
    const int x = static_cast<int>(std::lround(axes.x.position(s.x[i]) * (dots.width() - 1)));
    const int y = static_cast<int>(std::lround((1 - axes.y.position(s.y[i])) * (dots.height() - 1)));
    dots.line(connected ? last_x : x, connected ? last_y : y, x, y, owner);
    last_x = x, last_y = y, connected = true;
  }
}

// The series and their marks, and what they are over, in lines of at most `columns`.
std::vector<std::string> legend(std::span<const Series> series, const std::string& over, int columns, bool colour,
                                bool letters) {
  std::vector<std::string> lines{""};
  const auto add = [&](const std::string& entry) {
    if (!lines.back().empty() && display_width(lines.back()) + 3 + display_width(entry) > columns) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : "   ") + entry;
  };
  for (std::size_t i = 0; i < series.size(); ++i) {
    const std::string mark = letters  ? std::string(1, static_cast<char>('a' + i % 26))
                             : colour ? fmt::format("\033[{}m━━\033[0m", colours[i % colours.size()])
                                      : "━━";
    add(fmt::format("{} {}", mark, series[i].name));
  }
  if (!over.empty()) add("over " + over);
  return lines;
}

// The labels of the x axis, centred below their marks, none over another.
std::string x_labels(const Axis& axis, int columns) {
  std::string line(static_cast<std::size_t>(columns), ' ');
  int free_from = 0;
  for (const auto& tick : axis.ticks) {
    const int length = static_cast<int>(tick.label.size());
    const int centre = static_cast<int>(std::lround(axis.position(tick.value) * (columns - 1)));
    const int at = std::clamp(centre - length / 2, 0, std::max(0, columns - length));
    if (at < free_from || at + length > columns) continue;
    line.replace(static_cast<std::size_t>(at), tick.label.size(), tick.label);
    free_from = at + length + 1;
  }
  return line;
}

}  // namespace

std::string plot_text(std::span<const Series> series, const PlotOptions& options, int columns, int rows, bool colour) {
  const bool letters = !colour && series.size() > 1;
  constexpr int usual_margin = 10;  // the labels of the y axis are hardly ever wider
  std::vector<std::string> names;
  if (!series.empty()) names = legend(series, options.x_label, std::max(4, columns - usual_margin), colour, letters);
  const int extra = 2 + !options.title.empty() + static_cast<int>(names.size());  // axis, labels, title, legend
  const int plot_rows = std::max(2, rows - extra);
  PlotAxes axes = axes_of(series, options.log_y, std::max(2, columns / 12), std::max(2, plot_rows / 3));
  std::size_t margin = 1;
  for (const auto& tick : axes.y.ticks) margin = std::max(margin, tick.label.size());
  const int plot_columns = std::max(4, columns - static_cast<int>(margin) - 2);

  Dots dots(plot_columns, plot_rows);
  for (std::size_t i = 0; i < series.size(); ++i) draw(dots, series[i], axes, options.log_y, static_cast<int>(i));

  std::vector<std::string> y_labels(static_cast<std::size_t>(plot_rows));
  for (const auto& tick : axes.y.ticks) {
    const auto row = static_cast<std::size_t>(std::lround((1 - axes.y.position(tick.value)) * (plot_rows - 1)));
    if (row < y_labels.size()) y_labels[row] = tick.label;
  }
  std::string text;
  const auto add = [&](const std::string& line) {
    std::string fitted = fit(line, columns);
    fitted.resize(fitted.find_last_not_of(' ') + 1);
    text += fitted + "\n";
  };
  if (!options.title.empty()) add(fmt::format("{:{}}  {}", "", margin, options.title));
  for (int row = 0; row < plot_rows; ++row) {
    const auto& label = y_labels[static_cast<std::size_t>(row)];
    add(fmt::format("{:>{}} {}{}", label, margin, label.empty() ? "│" : "┤", dots.row(row, colour, letters)));
  }
  std::string bottom = fmt::format("{:{}} └", "", margin);
  std::vector<char> marked(static_cast<std::size_t>(plot_columns), 0);
  for (const auto& tick : axes.x.ticks)
    marked[static_cast<std::size_t>(std::lround(axes.x.position(tick.value) * (plot_columns - 1)))] = !axes.empty;
  for (const char mark : marked) bottom += mark ? "┬" : "─";
  add(bottom);
  add(fmt::format("{:{}}  {}", "", margin, axes.empty ? "no points" : x_labels(axes.x, plot_columns)));
  for (const std::string& line : names) add(fmt::format("{:{}}  {}", "", margin, line));
  return text;
}

}  // namespace echelon
