#pragma once
// Faults of a simulated cluster, drawn from a seed.

#include "base/random.h"
#include "world/sim/faults.h"

namespace echelon::test {

// For a run of about that many seconds: mild enough that it often ends well. With `fatal`, also crashes and partitions
// that never heal.
inline FaultPlan random_faults(std::uint64_t seed, int ranks, double seconds, bool fatal = true) {
  const Stream random({seed, 0, 0, stream_layer("sim.random_faults")});
  std::uint64_t drawn = 0;
  const auto uniform = [&] { return static_cast<double>(random.uniform(drawn++)); };
  const auto chance = [&](double p) { return uniform() < p; };
  const auto rank = [&] { return static_cast<int>(random.below(static_cast<std::uint32_t>(ranks), drawn++)); };

  FaultPlan plan;
  if (chance(0.6)) plan.drop = 0.15 * uniform();
  if (chance(0.6)) plan.duplicate = 0.2 * uniform();
  if (chance(0.6)) plan.reorder = 0.3 * uniform();
  if (chance(0.4)) plan.delay = 0.1 * uniform();
  if (chance(0.6)) plan.corrupt = 0.1 * uniform();
  if (chance(0.4)) plan.stale = 0.1 * uniform();
  if (chance(0.3)) plan.pauses.push_back({rank(), seconds * uniform(), seconds * uniform()});
  if (chance(0.3)) plan.slow.push_back({rank(), 1 + 9 * uniform(), 0, seconds * uniform()});
  if (chance(0.2)) plan.full_disks.push_back({0, 0, seconds * uniform()});
  if (ranks > 1 && chance(0.25)) {
    FaultPlan::Partition cut{.one = {}, .other = {}, .one_way = chance(0.4), .begin = seconds * uniform()};
    cut.end = fatal && chance(0.3) ? FaultPlan::forever : cut.begin + 0.2 * uniform();
    const int border = 1 + static_cast<int>(random.below(static_cast<std::uint32_t>(ranks - 1), drawn++));
    for (int r = 0; r < ranks; ++r) (r < border ? cut.one : cut.other).push_back(r);
    plan.partitions.push_back(cut);
  }
  if (fatal && chance(0.2)) plan.crashes.push_back({rank(), seconds * uniform(), chance(0.3)});
  return plan;
}

}  // namespace echelon::test
