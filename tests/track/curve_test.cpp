#include "track/curve.h"

#include <gtest/gtest.h>

#include <set>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "base/text.h"
#include "tests/support/says.h"
#include "tests/support/temp_dir.h"
#include "track/axis.h"

namespace echelon {
namespace {

using test::says;

Series falling(const std::string& name, int points, double from = 2.0) {
  Series s{name, {}, {}};
  for (int i = 1; i <= points; ++i) s.x.push_back(i), s.y.push_back(from / std::sqrt(i));
  return s;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(Plot, EverySeriesIsNamedHoweverManyThereAre) {
  std::vector<Series> many;
  for (int i = 0; i < 9; ++i) many.push_back(falling("run-" + std::to_string(i) + " train_loss", 20));
  const std::string text = plot_text(many, {"", "step", "", false}, 60, 12, false);
  for (const Series& s : many) EXPECT_TRUE(says(text, s.name));
  EXPECT_TRUE(says(text, "over step"));
  for (const std::string& line : lines_of(text)) EXPECT_LE(display_width(line), 60);
}

TEST(Axis, ShowsTheWholeRangeWithRoundMarks) {
  for (const auto& [low, high] :
       {std::pair{0.0, 1.0}, {0.013, 2.7}, {-5.0, 3.0}, {1e-7, 3e-7}, {0.0, 123456.0}, {7.0, 7.0}}) {
    for (const bool log : {false, true}) {
      const Axis axis = make_axis(low, high, 6, log);
      EXPECT_LE(axis.low, low);
      EXPECT_GE(axis.high, high);
      EXPECT_GE(axis.ticks.size(), 2u) << low << " " << high << " " << log;
      EXPECT_LE(axis.ticks.size(), 10u) << low << " " << high << " " << log;
      for (std::size_t i = 0; i < axis.ticks.size(); ++i) {
        EXPECT_GE(axis.position(axis.ticks[i].value), -1e-9);
        EXPECT_LE(axis.position(axis.ticks[i].value), 1 + 1e-9);
        if (i > 0) {
          EXPECT_GT(axis.ticks[i].value, axis.ticks[i - 1].value);
          EXPECT_NE(axis.ticks[i].label, axis.ticks[i - 1].label);
        }
        const std::string& label = axis.ticks[i].label;  // says the number it stands at
        const double unit = label.ends_with('k') ? 1e3 : label.ends_with('M') ? 1e6 : 1;
        EXPECT_NEAR(std::stod(label) * unit, axis.ticks[i].value, std::abs(axis.ticks[i].value) * 0.01 + 1e-12)
            << label;
      }
    }
  }
  EXPECT_FALSE(make_axis(-1, 1, 5, true).log);
  EXPECT_FALSE(make_axis(NAN, NAN, 5).ticks.empty());
}

TEST(Curve, SeriesComeFromMetrics) {
  const std::vector<MetricPoint> points{{1, 0, 0, {{"loss", 3}}}, {2, 0, 0, {{"acc", 1}}}, {3, 0, 0, {{"loss", 2}}}};
  const Series s = series_of(points, "loss");
  EXPECT_EQ(s.x, (std::vector<double>{1, 3}));
  EXPECT_EQ(s.y, (std::vector<double>{3, 2}));
}

TEST(Curve, SmoothingKeepsConstantsAndCutsNoise) {
  Series noise{"n", {}, {}};
  for (int i = 0; i < 200; ++i) noise.x.push_back(i), noise.y.push_back(5 + (i % 2 ? 1 : -1));
  const Series calm = smoothed(noise, 20);
  EXPECT_EQ(calm.y[0], 4);
  for (int i = 100; i < 200; ++i) EXPECT_NEAR(calm.y[i], 5, 0.1);
  EXPECT_EQ(smoothed(noise, 1).y, noise.y);
}

TEST(PlotText, FitsAndHasTheAskedHeight) {
  for (const int columns : {20, 40, 80, 200})
    for (const int rows : {8, 16, 30})
      for (const bool colour : {false, true})
        for (const bool log : {false, true}) {
          const std::vector<Series> two{falling("train", 500), falling("test", 20, 2.5)};
          const auto lines = lines_of(plot_text(two, {"a title", "step", "loss", log}, columns, rows, colour));
          EXPECT_EQ(static_cast<int>(lines.size()), rows);
          for (const auto& line : lines) EXPECT_LE(display_width(line), columns) << line;
        }
}

TEST(PlotText, AFallingCurveFalls) {
  const auto lines = lines_of(plot_text(std::vector{falling("loss", 300)}, {}, 60, 15, false));
  // In every text row the dots are to the right of those in the row above.
  std::size_t before = 0;
  int rows_with_dots = 0;
  for (const auto& line : lines) {
    const auto first = line.find("\xe2\xa0"), other = line.find("\xe2\xa1");  // braille begins with one of these or
    const auto more = line.find("\xe2\xa2"), last = line.find("\xe2\xa3");    // of these
    const auto at = std::min(std::min(first, other), std::min(more, last));
    if (at == std::string::npos) continue;
    EXPECT_GE(at, before);
    before = at;
    ++rows_with_dots;
  }
  EXPECT_GT(rows_with_dots, 8);
}

TEST(PlotText, WithoutColourSeriesAreLetters) {
  const std::vector<Series> two{falling("train", 50, 1), falling("test", 50, 3)};
  const std::string text = plot_text(two, {}, 60, 12, false);
  EXPECT_EQ(text.find('\033'), std::string::npos);
  EXPECT_TRUE(says(text, "a train"));
  EXPECT_TRUE(says(text, "b test"));
  EXPECT_TRUE(says(text, "aaa"));
}

TEST(PlotText, EqualCurvesTakeTurnsAndNoneHidesAnother) {
  const Series flat{"one", {0, 1, 2}, {1, 1, 1}}, same{"two", {0, 1, 2}, {1, 1, 1}}, other{"three", {0, 2}, {2, 2}};
  const std::string letters = plot_text(std::vector{flat, same, other}, {}, 60, 12, false);
  EXPECT_TRUE(says(letters, "ababababab"));
  EXPECT_TRUE(says(letters, "cccccccccc"));  // a curve by itself has its own letter everywhere
  const std::string coloured = plot_text(std::vector{flat, same, other}, {}, 60, 12, true);
  const auto count = [&](const char* colour) {
    int n = 0;
    for (std::size_t at = 0; (at = coloured.find(colour, at)) != std::string::npos; ++at) ++n;
    return n;
  };
  EXPECT_GT(count("\033[36m"), 10);  // each of both again and again, besides the legend
  EXPECT_GT(count("\033[33m"), 10);
  EXPECT_EQ(count("\033[35m"), 2);
}

TEST(PlotText, SurvivesWhatIsNotANumber) {
  Series s{"s", {1, 2, 3, 4, 5}, {1, NAN, INFINITY, -3, 2}};
  EXPECT_FALSE(plot_text(std::vector{s}, {"t", "", "", true}, 40, 10, true).empty());
  EXPECT_TRUE(says(plot_text({}, {}, 40, 10, true), "no points"));
  EXPECT_TRUE(says(plot_text(std::vector{Series{"s", {1}, {NAN}}}, {}, 40, 10, true), "no points"));
  EXPECT_FALSE(plot_text(std::vector{Series{"s", {1}, {1}}}, {}, 1, 1, true).empty());
}

// Read by Python's XML parser, which refuses what is not well-formed; prints how many points each line has.
std::string seen_by_xml_parser(const std::string& svg) {
  const test::TempDir dir;
  std::ofstream(dir.path("plot.svg")) << svg;
  return test::output_of(
      "/usr/bin/python3 -c \"import sys, xml.etree.ElementTree as e; r = e.parse(sys.argv[1]).getroot(); "
      "n = '{http://www.w3.org/2000/svg}'; assert r.tag == n + 'svg'; "
      "print([len(p.get('points').split()) for p in r.iter(n + 'polyline')], "
      "[t.text for t in r.iter(n + 'text')])\" " +
      dir.path("plot.svg"));
}

TEST(PlotSvg, IsWellFormedAndHasEverySeries) {
  const std::vector<Series> two{falling("train <loss> & \"more\"", 60), falling("test\x01", 20)};
  const std::string seen = seen_by_xml_parser(plot_svg(two, {"A & B <c>", "step", "loss", true}));
  EXPECT_TRUE(says(seen, "[60, 20]"));
  for (const char* text : {"A & B <c>", "train <loss> & \"more\"", "'test'", "'step'", "'loss'"})
    EXPECT_TRUE(says(seen, text));
}

TEST(PlotSvg, ManyPointsAreThinnedAndGapsStayGaps) {
  Series s = falling("long", 200'000);
  s.y[100'000] = NAN;
  const std::string svg = plot_svg(std::vector{s}, {});
  EXPECT_LT(svg.size(), 80'000u);
  const std::string seen = seen_by_xml_parser(svg);
  EXPECT_EQ(std::ranges::count(seen.substr(0, seen.find(']')), ','), 1) << "two pieces: " << seen.substr(0, 80);
}

TEST(PlotSvg, SurvivesNothing) {
  EXPECT_TRUE(says(seen_by_xml_parser(plot_svg({}, {})), "no points"));
  seen_by_xml_parser(plot_svg(std::vector{Series{"one", {1}, {1}}}, {}));
}

TEST(PlotSvg, ManySeriesCanBeToldApartAndTheirNamesStayInside) {
  std::vector<Series> many;
  for (int i = 0; i < 14; ++i) many.push_back({"a_long_name_" + std::to_string(i), {0, 1}, {0, double(i)}});
  const std::string svg = plot_svg(many, {});
  std::set<std::string> strokes;
  for (std::size_t at = 0; (at = svg.find("<polyline", at)) != std::string::npos; ++at) {
    const auto begin = svg.find("fill=", at);
    strokes.insert(svg.substr(begin, svg.find("/>", at) - begin));
  }
  EXPECT_EQ(strokes.size(), 14u);
  for (std::size_t at = 0; (at = svg.find("class=\"l\" x=\"", at)) != std::string::npos; ++at)
    EXPECT_LT(std::stod(svg.substr(at + 13)), 720 - 24 - 50);
}

}  // namespace
}  // namespace echelon
