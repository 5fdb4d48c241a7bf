#include "run/agreement.h"

#include <algorithm>
#include <vector>

#include "base/crc32c.h"
#include "base/error.h"

namespace echelon {

// Ranks that were given the same recipe have the same bits, unless one of them computes wrongly. What they disagree on
// is not saved, and the run does not end as if they had agreed.
void expect_same_weights(Team& team, std::span<const float> weights, std::int64_t step) {
  if (team.world().size() == 1) return;
  const std::uint32_t mine = crc32c(std::as_bytes(weights));  // finds every single flipped bit
  const std::vector<std::uint32_t> all = team.all_gather_struct(mine);
  const auto holders = [&](std::uint32_t hash) { return std::ranges::count(all, hash); };
  const std::uint32_t usual = *std::ranges::max_element(all, {}, holders);
  if (holders(usual) == std::ssize(all)) return;
  if (2 * holders(usual) <= std::ssize(all))
    fail(
        "the {} ranks hold different weights after step {}, and no majority tells whose are right. Nothing was saved "
        "of it: resume from the last checkpoint",
        all.size(), step);
  std::string others;
  for (std::size_t r = 0; r < all.size(); ++r)
    if (all[r] != usual) others += fmt::format("{}rank {} holds", others.empty() ? "" : ", ", r);
  fail(
      "{} other weights than the {} other ranks after step {}: its memory or arithmetic is not to be trusted, or it "
      "runs another program. Nothing was saved of it: resume from the last checkpoint without that machine",
      others, holders(usual), step);
}

}  // namespace echelon
