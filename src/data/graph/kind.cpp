#include "data/graph/kind.h"

#include "data/graph/neighbourhoods.h"

namespace echelon::data {

OpenSplit read_graph_kind(OptionReader& table, const DataPath& fallback) {
  const std::vector<std::int64_t> sizes = table.integers("neighbours", {10, 10}, 0, 1 << 16);
  if (sizes.empty() || sizes.size() + 2 > Shape::max_rank)
    table.problem("neighbours", "has a number for each layer of the network, 1 to 4 of them; 0: all neighbours");
  if (const std::string make = table.choice("make", "files", {"files", "communities"}); make == "communities") {
    Communities o;
    o.nodes = table.integer("nodes", o.nodes, 2, 1 << 24);
    o.classes = table.integer("classes", o.classes, 2, 1 << 16);
    o.features = table.integer("features", o.features, 1, 1 << 16);
    o.degree = table.number("degree", o.degree, 0, 1e4);
    o.within = table.number("within", o.within, 0, 1);
    o.noise = table.number("noise", o.noise, 0, 1e6);
    o.seed = static_cast<std::uint64_t>(table.integer("seed", 1, 0));
    if (o.classes > o.nodes) table.problem("classes", "are more than there are nodes");
    return [=](Disk&, const std::string& split) -> DatasetPtr {
      only_train(split, "a graph");
      return make_neighbourhoods(make_communities(o), sizes);
    };
  }
  const std::string path = table.text("path", "");
  if (path.empty() && !fallback)
    table.problem("path", "is missing: a folder with edges.txt and nodes.txt, or set data.make = \"communities\"");
  return [=](Disk& disk, const std::string& split) -> DatasetPtr {
    const std::string folder = path.empty() ? fallback(disk) : path;
    only_train(split, folder);
    return make_neighbourhoods(read_node_graph(disk, folder), sizes);
  };
}

}  // namespace echelon::data
