#include "plan/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "base/svg.h"

namespace echelon {

namespace {

char sign_of(const StageTask& t) {
  const int n = t.micro_batch % 10;
  const char first = t.pass == Pass::forward ? '0' : t.pass == Pass::backward ? 'a' : 'A';
  return static_cast<char>(first + n);
}

struct PassLook {
  const char *name, *fill, *text;
};

PassLook look_of(Pass pass) {
  if (pass == Pass::forward) return {"forward", "#56b4e9", "#0b1a26"};
  if (pass == Pass::backward) return {"backward", "#0072b2", "#ffffff"};
  return {"weight gradients", "#e69f00", "#0b1a26"};
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
  constexpr int left = 76, top = 66, row = 26, box = 22, width = 1000;
  const auto height = static_cast<int>(replay.ranks.size()) * row + top + 16;
  const double scale = replay.seconds > 0 ? width / replay.seconds : 0;
  std::string out = svg_begin(left + width + 20, height, title, left);
  std::set<Pass> passes;
  for (const auto& rank : replay.ranks)
    for (const TaskTime& t : rank) passes.insert(t.task.pass);
  int x = left;
  for (const Pass pass : passes) {
    const PassLook look = look_of(pass);
    out += fmt::format(
        "<rect x=\"{}\" y=\"41\" width=\"12\" height=\"12\" rx=\"2\" fill=\"{}\"/><text class=\"l\" x=\"{}\" "
        "y=\"51\">{}</text>\n",
        x, look.fill, x + 18, look.name);
    x += 18 + 7 * static_cast<int>(std::string_view(look.name).size()) + 22;
  }
  out += fmt::format("<text x=\"{}\" y=\"51\">idle {:.1f} %</text>\n", x, 100 * replay.bubble());
  for (std::size_t r = 0; r < replay.ranks.size(); ++r) {
    const int y = top + static_cast<int>(r) * row;
    out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">rank {}</text>\n", left - 10, y + 15, r);
    for (const TaskTime& t : replay.ranks[r]) {
      const double begin = left + t.begin * scale, w = (t.end - t.begin) * scale;
      const PassLook look = look_of(t.task.pass);
      out += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" rx=\"2\" fill=\"{}\"><title>{}</title></rect>\n",
          begin, y, std::max(.5, w - 1), box, look.fill, svg_escaped(to_string(t.task)));
      if (w >= 14)
        out += fmt::format("<text x=\"{:.2f}\" y=\"{}\" text-anchor=\"middle\" style=\"fill:{}\">{}</text>\n",
                           begin + w / 2, y + 15, look.text, t.task.micro_batch);
    }
  }
  return out + "</svg>\n";
}

}  // namespace echelon
