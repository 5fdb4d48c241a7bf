#include "web/downsample.h"

#include <algorithm>
#include <cmath>

namespace echelon::web {

Curve downsample(std::span<const double> x, std::span<const double> y, double from, double to, std::size_t most) {
  Curve all;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (std::isfinite(x[i]) && std::isfinite(y[i]) && x[i] >= from && x[i] <= to)
      all.x.push_back(x[i]), all.y.push_back(y[i]);
  all.points = all.x.size();
  if (all.points <= std::max<std::size_t>(most, 4)) return all;

  const std::size_t pieces = std::max<std::size_t>(most, 4) / 2;
  const double low = all.x.front(), width = all.x.back() - low;
  Curve few{.x = {}, .y = {}, .points = all.points};
  const auto keep = [&](std::size_t i) { few.x.push_back(all.x[i]), few.y.push_back(all.y[i]); };
  const auto piece_of = [&](std::size_t i) {
    const double at = width > 0 ? (all.x[i] - low) / width : 0;
    return std::min(pieces - 1, static_cast<std::size_t>(at * static_cast<double>(pieces)));
  };
  for (std::size_t begin = 0; begin < all.points;) {
    std::size_t end = begin, least = begin, greatest = begin;
    for (const std::size_t piece = piece_of(begin); end < all.points && piece_of(end) == piece; ++end) {
      if (all.y[end] < all.y[least]) least = end;
      if (all.y[end] > all.y[greatest]) greatest = end;
    }
    keep(std::min(least, greatest));
    if (least != greatest) keep(std::max(least, greatest));
    begin = end;
  }
  return few;
}

}  // namespace echelon::web
