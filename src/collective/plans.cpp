#include "collective/plans.h"

namespace echelon {

namespace {

Range at(std::span<const Range> parts, int i) {
  const int n = static_cast<int>(parts.size());
  return parts[static_cast<std::size_t>(((i % n) + n) % n)];
}

}  // namespace

int plan_ring_reduce_scatter(int n, int index, std::span<const Range> parts, int step, Mover& mover) {
  const int right = (index + 1) % n, left = (index + n - 1) % n;
  for (int s = 0; s < n - 1; ++s)
    mover.move({.to = right,
                .out = at(parts, index - s - 1),
                .from = left,
                .in = at(parts, index - s - 2),
                .reduce = true,
                .step = step + s});
  return step + n - 1;
}

int plan_ring_all_gather(int n, int index, std::span<const Range> parts, int step, Mover& mover) {
  const int right = (index + 1) % n, left = (index + n - 1) % n;
  for (int s = 0; s < n - 1; ++s)
    mover.move({.to = right,
                .out = at(parts, index - s),
                .from = left,
                .in = at(parts, index - s - 1),
                .reduce = false,
                .step = step + s});
  return step + n - 1;
}

int plan_binomial_reduce(int n, int index, int root, Range data, int step, Mover& mover) {
  const int i = (index - root + n) % n, most = binomial_span(i, n);
  const auto member = [&](int k) { return (k + root) % n; };
  for (int bit = 1; bit <= most; bit *= 2)
    if (i + bit < n) mover.move({.from = member(i + bit), .in = data, .reduce = true, .step = step});
  if (i > 0) mover.move({.to = member(binomial_parent(i)), .out = data, .step = step});
  return step + 1;
}

int plan_binomial_broadcast(int n, int index, int root, Range data, int step, Mover& mover) {
  const int i = (index - root + n) % n, most = binomial_span(i, n);
  const auto member = [&](int k) { return (k + root) % n; };
  if (i > 0) mover.move({.from = member(binomial_parent(i)), .in = data, .step = step});
  for (int bit = most; bit > 0; bit /= 2)
    if (i + bit < n) mover.move({.to = member(i + bit), .out = data, .step = step});
  return step + 1;
}

int plan_flat_gather(int n, int index, int root, std::span<const Range> parts, int step, Mover& mover) {
  if (index != root) {
    mover.move({.to = root, .out = at(parts, index), .step = step});
  } else {
    for (int i = 0; i < n; ++i)
      if (i != root) mover.move({.from = i, .in = at(parts, i), .step = step});
  }
  return step + 1;
}

int plan_flat_scatter(int n, int index, int root, std::span<const Range> parts, int step, Mover& mover) {
  if (index != root) {
    mover.move({.from = root, .in = at(parts, index), .step = step});
  } else {
    for (int i = 0; i < n; ++i)
      if (i != root) mover.move({.to = i, .out = at(parts, i), .step = step});
  }
  return step + 1;
}

}  // namespace echelon
