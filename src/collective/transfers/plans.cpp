#include "collective/transfers/plans.h"

namespace echelon {

namespace {

Range part_at(std::span<const Range> parts, int i) {
  const int n = static_cast<int>(parts.size());
  return parts[static_cast<std::size_t>(((i % n) + n) % n)];
}

}  // namespace

int plan_ring_reduce_scatter(int n, int index, std::span<const Range> parts, int step, TransferRunner& runner) {
  const int right = (index + 1) % n, left = (index + n - 1) % n;
  for (int s = 0; s < n - 1; ++s)
    runner.run({.to = right,
                .out = part_at(parts, index - s - 1),
                .from = left,
                .in = part_at(parts, index - s - 2),
                .reduce = true,
                .step = step + s});
  return step + n - 1;
}

int plan_ring_all_gather(int n, int index, std::span<const Range> parts, int step, TransferRunner& runner) {
  const int right = (index + 1) % n, left = (index + n - 1) % n;
  for (int s = 0; s < n - 1; ++s)
    runner.run({.to = right,
                .out = part_at(parts, index - s),
                .from = left,
                .in = part_at(parts, index - s - 1),
                .reduce = false,
                .step = step + s});
  return step + n - 1;
}

int plan_binomial_reduce(int n, int index, int root, Range data, int step, TransferRunner& runner) {
  const int i = (index - root + n) % n, most = binomial_span(i, n);
  const auto member = [&](int k) { return (k + root) % n; };
  for (int bit = 1; bit <= most; bit *= 2)
    if (i + bit < n) runner.run({.from = member(i + bit), .in = data, .reduce = true, .step = step});
  if (i > 0) runner.run({.to = member(binomial_parent(i)), .out = data, .step = step});
  return step + 1;
}

int plan_binomial_broadcast(int n, int index, int root, Range data, int step, TransferRunner& runner) {
  const int i = (index - root + n) % n, most = binomial_span(i, n);
  const auto member = [&](int k) { return (k + root) % n; };
  if (i > 0) runner.run({.from = member(binomial_parent(i)), .in = data, .step = step});
  for (int bit = most; bit > 0; bit /= 2)
    if (i + bit < n) runner.run({.to = member(i + bit), .out = data, .step = step});
  return step + 1;
}

int plan_flat_gather(int n, int index, int root, std::span<const Range> parts, int step, TransferRunner& runner) {
  if (index != root) {
    runner.run({.to = root, .out = part_at(parts, index), .step = step});
  } else {
    for (int i = 0; i < n; ++i)
      if (i != root) runner.run({.from = i, .in = part_at(parts, i), .step = step});
  }
  return step + 1;
}

int plan_flat_scatter(int n, int index, int root, std::span<const Range> parts, int step, TransferRunner& runner) {
  if (index != root) {
    runner.run({.from = root, .in = part_at(parts, index), .step = step});
  } else {
    for (int i = 0; i < n; ++i)
      if (i != root) runner.run({.to = i, .out = part_at(parts, i), .step = step});
  }
  return step + 1;
}

}  // namespace echelon
