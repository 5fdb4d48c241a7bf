#include "world/transport/tcp/job_table.h"

#include <map>

namespace echelon::tcp {

JobTable table_of(const std::vector<NodeOffer>& nodes, std::size_t node, const Bytes32& session) {
  JobTable table{.seed = nodes.front().seed, .session = session};
  std::map<std::string, int> hosts;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const int host = hosts.emplace(nodes[i].host_id, static_cast<int>(hosts.size())).first->second;
    if (i == node) table.first_rank = static_cast<int>(table.peers.size());
    for (const std::uint16_t port : nodes[i].ports) table.peers.push_back({host, nodes[i].address, port});
  }
  return table;
}

}  // namespace echelon::tcp
