#include "plan/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace echelon {

namespace {

char sign_of(const StageTask& t) {
  const int n = t.micro_batch % 10;
  const char first = t.pass == Pass::forward ? '0' : t.pass == Pass::backward ? 'a' : 'A';
  return static_cast<char>(first + n);
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else
      out += c;
  }
  return out;
}

}  // namespace

std::string draw_schedule(const Replay& replay, int columns) {
  if (replay.seconds <= 0) return "";
  const int label = static_cast<int>(fmt::format("rank {} ", replay.ranks.size() - 1).size());
  const int width = std::max(1, columns - label);
  double shortest = replay.seconds;
  for (const auto& rank : replay.ranks)
    for (const TaskTime& t : rank)
      if (t.end > t.begin) shortest = std::min(shortest, t.end - t.begin);
  // Two characters for the shortest task, if that fits.
  const double scale = std::min(2 / shortest, width / replay.seconds);
  std::string text;
  for (std::size_t r = 0; r < replay.ranks.size(); ++r) {
    std::string row(static_cast<std::size_t>(std::ceil(replay.seconds * scale - 1e-9)), '.');
    for (const TaskTime& t : replay.ranks[r]) {
      const auto begin = static_cast<std::size_t>(std::llround(t.begin * scale)),
                 end = static_cast<std::size_t>(std::llround(t.end * scale));
      for (std::size_t i = begin; i < std::min(end, row.size()); ++i) row[i] = sign_of(t.task);
    }
    text += fmt::format("{:<{}}{}\n", fmt::format("rank {}", r), label, row);
  }
  return text;
}

std::string schedule_svg(const Replay& replay, const std::string& title) {
  constexpr int left = 70, top = 40, row = 26, box = 22, width = 1000;
  const auto height = static_cast<int>(replay.ranks.size()) * row + top + 30;
  const double scale = replay.seconds > 0 ? width / replay.seconds : 0;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"{2}\" y=\"22\" font-size=\"14\">{3}</text>\n",
      left + width + 20, height, left, escaped(title));
  for (std::size_t r = 0; r < replay.ranks.size(); ++r) {
    const int y = top + static_cast<int>(r) * row;
    out += fmt::format("<text x=\"8\" y=\"{}\">rank {}</text>\n", y + 16, r);
    for (const TaskTime& t : replay.ranks[r]) {
      const double x = left + t.begin * scale, w = (t.end - t.begin) * scale;
      const char* fill = t.task.pass == Pass::forward    ? "#9ec5fe"
                         : t.task.pass == Pass::backward ? "#a3cfbb"
                                                         : "#ffe69c";
      out += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\" stroke=\"#555\">"
          "<title>{}</title></rect>\n",
          x, y, w, box, fill, to_string(t.task));
      if (w >= 14)
        out += fmt::format("<text x=\"{:.2f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x + w / 2, y + 16,
                           t.task.micro_batch);
    }
  }
  return out + fmt::format(
                   "<text x=\"{}\" y=\"{}\">blue forward, green backward, yellow weight gradients; idle {:.1f} "
                   "%</text>\n</svg>\n",
                   left, height - 10, 100 * replay.bubble());
}

}  // namespace echelon
