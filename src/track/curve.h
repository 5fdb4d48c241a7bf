#pragma once
// Curves of a run, or of several: in the terminal (braille dots, two by four in a character) and as SVG. Pure
// functions; numbers that are not finite leave a gap.

#include <span>
#include <string>
#include <vector>

#include "track/metrics.h"

namespace echelon {

struct Series {
  std::string name;
  std::vector<double> x, y;  // of the same length
};

// The values of one metric over the steps; only the points that have it.
Series series_of(const std::vector<MetricPoint>& points, const std::string& metric);

// Exponential moving average over about `window` points, without the bias towards the first ones.
Series smoothed(const Series& series, double window);

struct PlotOptions {
  std::string title, x_label, y_label;
  bool log_y = false;
};

// `columns` wide and `rows` high, title, axes and legend included. Series are told apart by colour, or by letters where
// there is none; where they run over each other they take turns.
std::string plot_text(std::span<const Series> series, const PlotOptions& options, int columns, int rows, bool colour);

// A document of its own, readable on light and on dark pages.
std::string plot_svg(std::span<const Series> series, const PlotOptions& options, int width = 720, int height = 420);

}  // namespace echelon
