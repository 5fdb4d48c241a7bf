#include "cli/runs/run_cluster.h"

#include <algorithm>
#include <array>

#include "collective/link_costs.h"
#include "world/os/host.h"

namespace echelon::cli {

namespace {
bool is_described(Team& team) { return team.world().size() > 1 && team.world().place().world != "sim"; }
}  // namespace

RunCluster::RunCluster(Team& team, Disk& disk, const RunFolder& folder, const Json& plan,
                       std::function<void(const std::string&)> note)
    : team_(team), disk_(disk), folder_(folder), note_(std::move(note)) {
  if (!is_described(team)) return;
  struct Here {
    std::array<char, 64> host{};
    std::int64_t process = 0, cores = 0;
  } here;
  const std::string host = host_name();
  std::copy_n(host.begin(), std::min(host.size(), here.host.size() - 1), here.host.begin());
  here.process = process_id();
  here.cores = team.cores().count();
  json_ = {{"world", team.world().place().world}, {"ranks", Json::array()}};
  for (const Here& rank : team.all_gather_struct(here))
    json_["ranks"].push_back({{"host", rank.host.data()}, {"process", rank.process}, {"cores", rank.cores}});
  if (!plan.is_null()) json_["plan"] = plan;
  write();
}

void RunCluster::add_links() {
  if (!is_described(team_)) return;
  const LinkCosts costs = link_costs(team_.group());
  json_["links"] = {{"hosts", costs.hosts},
                    {"latency_s", costs.latency},
                    {"bytes_per_s", costs.per_byte > 0 ? 1 / costs.per_byte : 0},
                    {"host_latency_s", costs.host_latency},
                    {"host_bytes_per_s", costs.host_per_byte > 0 ? 1 / costs.host_per_byte : 0}};
  constexpr int most_in_pairs = 16;  // so many measure each link by itself: 120 pairs, less than a second
  if (team_.world().size() <= most_in_pairs) {
    std::array<PairCost, most_in_pairs> own{};
    std::ranges::copy(measure_pairs(team_.group()), own.begin());
    json_["pairs"] = Json::array();
    int rank = 0;
    for (const auto& row : team_.all_gather_struct(own)) {
      for (int peer = rank + 1; peer < team_.world().size(); ++peer) {
        const PairCost& cost = row[static_cast<std::size_t>(peer)];
        json_["pairs"].push_back({{"from", rank},
                                  {"to", peer},
                                  {"latency_s", cost.latency},
                                  {"bytes_per_s", cost.per_byte > 0 ? 1 / cost.per_byte : 0}});
      }
      ++rank;
    }
  }
  write();
}

void RunCluster::write() {
  if (team_.world().rank() > 0) return;
  try {
    write_file_atomically(disk_, folder_.cluster(), json_.dump(1) + "\n");
  } catch (const DiskError& problem) {
    note_(problem.what());
  }
}

}  // namespace echelon::cli
