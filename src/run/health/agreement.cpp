#include "run/health/agreement.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include "base/crc32c.h"
#include "base/error.h"

namespace echelon {

namespace {

struct Hashed {
  int stage, part, rank;
  std::uint32_t hash;  // finds every single flipped bit
};

// What every rank holds, by stage and part.
std::map<std::pair<int, int>, std::vector<Hashed>> hashes_of_all(Team& team, std::span<const HeldWeights> held) {
  const std::vector<std::size_t> counts = team.all_gather_struct(held.size());
  const auto own = counts.begin() + team.world().rank();
  std::vector<Hashed> all(std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
  auto at = all.begin() + static_cast<std::ptrdiff_t>(std::accumulate(counts.begin(), own, std::size_t{0}));
  for (const HeldWeights& h : held) *at++ = {h.stage, h.part, team.world().rank(), crc32c(std::as_bytes(h.values))};
  team.all_gather_structs(std::span(all), counts);
  std::map<std::pair<int, int>, std::vector<Hashed>> by_place;
  for (const Hashed& h : all) by_place[{h.stage, h.part}].push_back(h);
  return by_place;
}

// Ranks that were given the same recipe have the same bits, unless one of them computes wrongly. What they disagree on
// is not saved, and the run does not end as if they had agreed.
void expect_same(const std::vector<Hashed>& all, std::int64_t step) {
  const auto holders = [&](std::uint32_t hash) { return std::ranges::count(all, hash, &Hashed::hash); };
  const std::uint32_t usual = std::ranges::max_element(all, {}, [&](const Hashed& h) { return holders(h.hash); })->hash;
  if (holders(usual) == std::ssize(all)) return;
  const int stage = all.front().stage;
  const std::string of_stage = stage < 0 ? "" : fmt::format(" of stage {}", stage);
  if (2 * holders(usual) <= std::ssize(all))
    fail(
        "the {} ranks{} hold different weights after step {}, and no majority tells whose are right. Nothing was saved "
        "of it: resume from the last checkpoint",
        all.size(), of_stage, step);
  std::string others;
  for (const Hashed& h : all)
    if (h.hash != usual) others += fmt::format("{}rank {} holds", others.empty() ? "" : ", ", h.rank);
  fail(
      "{} other weights than the {} other ranks{} after step {}: its memory or arithmetic is not to be trusted, or it "
      "runs another program. Nothing was saved of it: resume from the last checkpoint without that machine",
      others, holders(usual), of_stage, step);
}

}  // namespace

void expect_same_weights(Team& team, std::span<const HeldWeights> held, std::int64_t step) {
  if (team.world().size() == 1) return;
  for (const auto& [place, hashes] : hashes_of_all(team, held)) expect_same(hashes, step);
}

}  // namespace echelon
