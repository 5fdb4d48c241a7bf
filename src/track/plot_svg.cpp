#include <fmt/format.h>

#include <array>

#include "base/svg.h"
#include "track/curve.h"
#include "track/plot_range.h"

namespace echelon {

namespace {

// Colours that people with any kind of colour vision can tell apart (Okabe and Ito 2008), on light and dark ground.
constexpr std::array palette{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};

// Where colours begin again, lines are dashed.
struct Stroke {
  explicit Stroke(std::size_t number)
      : colour(palette[number % palette.size()]),
        dashes(number < palette.size()       ? ""
               : number < 2 * palette.size() ? " stroke-dasharray=\"7 4\""
                                             : " stroke-dasharray=\"2 4\"") {}
  const char *colour, *dashes;
};

struct Frame {
  double left, top, right, bottom;
};

struct Place {
  double x, y;
};

// A line's points, thinned to the first, lowest, highest and last of every pixel column: it looks the same.
class Polyline {
 public:
  void add(Place p) {
    if (count_ > 0 && std::floor(p.x) != std::floor(column_[0].x)) flush();
    if (count_ == 0) column_ = {p, p, p, p};
    if (p.y < column_[1].y) column_[1] = p;
    if (p.y > column_[2].y) column_[2] = p;
    column_[3] = p;
    ++count_;
  }
  std::string end() {
    flush();
    return std::exchange(text_, "");
  }

 private:
  void flush() {
    if (count_ > 0) {
      std::array<Place, 4> points = column_;
      if (points[1].x > points[2].x) std::swap(points[1], points[2]);
      for (std::size_t i = 0; i < points.size(); ++i)
        if (i == 0 || points[i].x != points[i - 1].x || points[i].y != points[i - 1].y)
          text_ += fmt::format("{}{:.1f},{:.1f}", text_.empty() ? "" : " ", points[i].x, points[i].y);
    }
    count_ = 0;
  }
  std::array<Place, 4> column_{};
  std::size_t count_ = 0;
  std::string text_;
};

std::string curve(const Series& s, const PlotAxes& axes, const Frame& f, bool log_y, const Stroke& stroke) {
  std::string svg;
  Polyline line;
  const auto finish = [&] {
    const std::string points = line.end();
    if (points.empty()) return;
    if (points.find(' ') == std::string::npos) {  // a single point would be invisible as a line
      const auto comma = points.find(',');
      svg += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"2.5\" fill=\"{}\"/>\n", points.substr(0, comma),
                         points.substr(comma + 1), stroke.colour);
    } else {
      svg += fmt::format(
          "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\" "
          "stroke-linejoin=\"round\" stroke-linecap=\"round\"{}/>\n",
          points, stroke.colour, stroke.dashes);
    }
  };
  for (std::size_t i = 0; i < std::min(s.x.size(), s.y.size()); ++i) {
    if (is_shown(s.x[i], s.y[i], log_y))
      line.add({f.left + axes.x.position(s.x[i]) * (f.right - f.left),
                f.bottom - axes.y.position(s.y[i]) * (f.bottom - f.top)});
    else
      finish();
  }
  finish();
  return svg;
}

std::string grid(const PlotAxes& axes, const Frame& f) {
  std::string svg;
  for (const auto& tick : axes.y.ticks) {
    const double y = f.bottom - axes.y.position(tick.value) * (f.bottom - f.top);
    svg += fmt::format("<path class=\"g\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>", f.left, y, f.right);
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", f.left - 8, y + 4,
                       svg_escaped(tick.label));
  }
  for (const auto& tick : axes.x.ticks) {
    const double x = f.left + axes.x.position(tick.value) * (f.right - f.left);
    svg += fmt::format("<path class=\"g\" d=\"M{:.1f} {:.1f}V{:.1f}\"/>", x, f.top, f.bottom);
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", x, f.bottom + 18,
                       svg_escaped(tick.label));
  }
  svg += fmt::format("<path class=\"a\" d=\"M{:.1f} {:.1f}V{:.1f}H{:.1f}\"/>\n", f.left, f.top, f.bottom, f.right);
  return svg;
}

// The series' names in rows between two edges, from `top` on; `bottom` is the last row's.
std::string legend(std::span<const Series> series, double left, double right, double top, double& bottom) {
  std::string svg;
  double x = left;
  bottom = top;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const double width = 25 + 7.2 * static_cast<double>(series[i].name.size());  // about that of the letters
    if (x > left && x + width > right) x = left, bottom += 20;
    const Stroke stroke(i);
    svg += fmt::format("<path d=\"M{:.1f} {:.1f}h18\" stroke=\"{}\" stroke-width=\"3\" stroke-linecap=\"round\"{}/>", x,
                       bottom - 4, stroke.colour, stroke.dashes);
    svg += fmt::format("<text class=\"l\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x + 25, bottom,
                       svg_escaped(series[i].name));
    x += width + 22;
  }
  return svg;
}

}  // namespace

std::string plot_svg(std::span<const Series> series, const PlotOptions& options, int width, int height) {
  const PlotAxes axes = axes_of(series, options.log_y, std::max(2, width / 100), std::max(2, height / 60));
  std::size_t label = 1;
  for (const auto& tick : axes.y.ticks) label = std::max(label, tick.label.size());
  const double title = options.title.empty() ? 0 : 26, names = series.empty() ? 0 : 24;
  Frame f{20 + 7.0 * static_cast<double>(label) + (options.y_label.empty() ? 0 : 20), 0, width - 24.0,
          height - (options.x_label.empty() ? 34.0 : 54.0)};
  double legend_ends = 0;
  const std::string labels = legend(series, f.left, f.right, title + names + 4, legend_ends);
  f.top = std::min(legend_ends + 12, f.bottom - 20);
  std::string svg = svg_begin(width, height, options.title, f.left);
  svg += labels;
  svg += grid(axes, f);
  for (std::size_t i = 0; i < series.size(); ++i) svg += curve(series[i], axes, f, options.log_y, Stroke(i));
  if (axes.empty)
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">no points</text>\n",
                       (f.left + f.right) / 2, (f.top + f.bottom) / 2);
  if (!options.x_label.empty())
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", (f.left + f.right) / 2,
                       height - 14, svg_escaped(options.x_label));
  if (!options.y_label.empty())
    svg += fmt::format("<text transform=\"translate(18 {:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
                       (f.top + f.bottom) / 2, svg_escaped(options.y_label));
  return svg + "</svg>\n";
}

}  // namespace echelon
