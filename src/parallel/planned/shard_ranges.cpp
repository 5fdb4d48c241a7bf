#include "parallel/planned/shard_ranges.h"

#include "optim/update.h"

namespace echelon {

std::vector<Range> shard_ranges(std::span<const HeldParameter> parameters, std::size_t floats, int members) {
  std::vector<Range> ranges;
  const auto n = static_cast<std::size_t>(members);
  const auto border = [&](std::size_t k) { return floats * k / n; };  // where range k would begin, but for blocks
  std::size_t begin = 0;
  const auto cut_before = [&](std::size_t at) {
    while (ranges.size() + 1 < n && at >= border(ranges.size() + 1)) {
      ranges.push_back({begin, at});
      begin = at;
    }
  };
  for (const HeldParameter& p : parameters)
    for (std::size_t at = p.offset; at < p.offset + p.size; at += p.trained ? Update::block_size : p.size)
      cut_before(at);
  while (ranges.size() + 1 < n) {
    ranges.push_back({begin, floats});
    begin = floats;
  }
  ranges.push_back({begin, floats});
  return ranges;
}

}  // namespace echelon
