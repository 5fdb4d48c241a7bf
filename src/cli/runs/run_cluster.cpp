#include "cli/runs/run_cluster.h"

#include <algorithm>
#include <array>
#include <map>

#include "world/failure.h"
#include "world/os/host.h"
#include "world/wrappers/metered.h"

namespace echelon::cli {

RunCluster::RunCluster(Team& team, Disk& disk, Clock& clock, const RunFolder& folder, const Json& plan,
                       std::function<void(const std::string&)> note)
    : team_(team),
      disk_(disk),
      clock_(clock),
      folder_(folder),
      note_(std::move(note)),
      described_(team.world().size() > 1),
      simulated_(team.world().place().world == "sim") {
  if (!described_) return;
  const RankPlace& place = team.world().place();
  json_ = {{"world", place.world}, {"ranks", Json::array()}};
  if (simulated_) {
    if (place.rank == 0)
      for (const int host : place.host)
        json_["ranks"].push_back({{"host", fmt::format("simulated host {}", host)}, {"cores", 1}});
  } else {
    struct Here {
      std::array<char, 64> host{};
      std::int64_t process = 0, cores = 0;
    } here;
    const std::string host = host_name();
    std::copy_n(host.begin(), std::min(host.size(), here.host.size() - 1), here.host.begin());
    here.process = process_id();
    here.cores = team.cores().count();
    for (const Here& rank : team.all_gather_struct(here))
      json_["ranks"].push_back({{"host", rank.host.data()}, {"process", rank.process}, {"cores", rank.cores}});
  }
  if (!plan.is_null()) json_["plan"] = plan;
  write();
}

void RunCluster::on_step(const StepEvent&) {
  constexpr double pause = 5;  // seconds
  if (!described_ || simulated_ || team_.world().rank() > 0 || clock_.seconds() < told_ + pause) return;
  told_ = clock_.seconds();
  json_["told"] = clock_.unix_seconds();
  for (Rank r = 0; r < team_.world().size(); ++r)
    json_["ranks"][static_cast<std::size_t>(r)]["status"] = to_text(team_.world().status_of(r));
  write();
}

void RunCluster::on_evaluation(const EvaluationEvent&) {
  if (!described_ || simulated_) return;
  add_traffic();
  write();
}

void RunCluster::finish() {
  if (!described_) return;
  json_.erase("told");
  for (Json& rank : json_["ranks"]) rank.erase("status");
  add_traffic();
  if (!simulated_) add_links();
  write();
}

// PeerLost names the rank; any other failure is this rank's own. Rank 0 writes it down, or if that one is lost the
// next.
void RunCluster::add_failure(const std::exception& problem) {
  const auto* lost = dynamic_cast<const PeerLost*>(&problem);
  const Rank failed = lost ? lost->rank() : team_.world().rank();
  if (!described_ || team_.world().rank() != (failed == 0 ? 1 : 0)) return;
  try {
    if (failed == 0) json_ = parse_json(read_text(disk_, folder_.cluster()), folder_.cluster());
    json_["failed"] = {{"rank", failed}, {"reason", lost ? lost->reason() : problem.what()}};
    write_file_atomically(disk_, folder_.cluster(), json_.dump(1) + "\n");
  } catch (const std::exception& unwritten) {
    note_(unwritten.what());
  }
}

void RunCluster::add_traffic() {
  const std::vector<std::uint64_t> own = bytes_to_peers(team_.world());
  if (own.empty()) return;
  std::vector<std::uint64_t> all(own.size() * own.size());
  std::ranges::copy(own, all.begin() + static_cast<std::ptrdiff_t>(own.size()) * team_.world().rank());
  team_.all_gather_structs(std::span(all), std::vector<std::size_t>(own.size(), own.size()));
  json_["sent"] = Json::array();
  for (std::size_t r = 0; r < own.size(); ++r)
    json_["sent"].push_back(std::vector(all.begin() + static_cast<std::ptrdiff_t>(r * own.size()),
                                        all.begin() + static_cast<std::ptrdiff_t>((r + 1) * own.size())));
}

void RunCluster::add_links() {
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
}

std::vector<std::string> RunCluster::hosts() const {
  std::vector<std::string> names;
  if (described_)
    for (const Json& rank : json_.at("ranks")) names.push_back(rank.at("host").get<std::string>());
  return names;
}

std::vector<RunCluster::HostPair> RunCluster::host_pairs() const {
  std::map<std::pair<std::string, std::string>, PairCost> least;
  const std::vector<std::string> names = hosts();
  if (json_.contains("pairs"))
    for (const Json& pair : json_.at("pairs")) {
      const std::string &a = names[pair.at("from").get<std::size_t>()], &b = names[pair.at("to").get<std::size_t>()];
      const double speed = pair.at("bytes_per_s").get<double>();
      if (a == b || speed <= 0) continue;
      const PairCost cost{pair.at("latency_s").get<double>(), 1 / speed};
      const auto [at, is_new] = least.try_emplace(std::minmax(a, b), cost);
      at->second = {std::min(at->second.latency, cost.latency), std::min(at->second.per_byte, cost.per_byte)};
    }
  std::vector<HostPair> pairs;
  for (const auto& [names_of, cost] : least) pairs.push_back({names_of.first, names_of.second, cost});
  return pairs;
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
