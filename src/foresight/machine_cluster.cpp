#include "foresight/machine_cluster.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "collective/shard_tree.h"
#include "foresight/costs/measure.h"
#include "foresight/predict.h"

namespace echelon::foresight {

std::string machine_cluster_toml(const PreparedRun& prepared, const Platform& platform) {
  invariant(platform.is_here() && platform.machines() == 1, "a cluster file of this machine is of this machine");
  const Prediction p = predict_whole(prepared, {.data = platform.ranks()}, platform, {.cores_each = 1});
  double seconds = p.ranks.front().compute;
  for (const auto& [what, s] : p.parts)
    if (what == "update" || what == "sum and update") seconds += s;
  const int shards = static_cast<int>(prepared.recipe.train.shards);
  const double share = static_cast<double>(shards_of(0, platform.ranks(), shards).count()) / shards;
  const double gflops = share * step_flops(prepared) / std::max(seconds, 1e-12) / 1e9;
  const LinkCosts& l = platform.links();
  std::string text = fmt::format(
      "# This machine as it was measured for {}, {} workers. The speed of a core counts all that a step does besides\n"
      "# its arithmetic, so it is right for this recipe only.\n[[machines]]\nname = \"here\"\n",
      prepared.recipe.path, platform.ranks());
  constexpr double gbit = 1e9 / 8, microsecond = 1e-6;
  if (platform.has_wires())
    text += fmt::format("count = {}\ngflops = {:.6g}\nbandwidth_gbit = {:.6g}\nlatency_us = {:.6g}\n", platform.ranks(),
                        gflops, 1 / l.per_byte / gbit, platform.latency(0, 1) / 2 / microsecond);
  else
    text +=
        fmt::format("ranks = {}\ngflops = {:.6g}\nmemory_gbit = {:.6g}\nmemory_latency_us = {:.6g}\n", platform.ranks(),
                    gflops, 1 / std::max(l.host_per_byte, 1e-15) / gbit, l.host_latency / microsecond);
  return text;
}

}  // namespace echelon::foresight
