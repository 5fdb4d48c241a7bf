#include "recipe/graph_file.h"

#include <fmt/format.h>

#include "base/error.h"

namespace echelon {

namespace {

const std::string* text_of(const Options& table, const char* key) {
  const auto it = table.items.find(key);
  return it == table.items.end() ? nullptr : std::get_if<std::string>(&it->second.value);
}

}  // namespace

void take_in_graph(Disk& disk, Options& exchange, Problems& problems) {
  const std::string *graph = text_of(exchange, "graph"), *path = text_of(exchange, "file");
  if (!graph || *graph != "file" || !path) return;
  const Place place = exchange.items["file"].place;
  if (exchange.items.contains("edges"))
    problems.add(place, "exchange.file and exchange.edges are both there: leave one out");
  try {
    exchange.items["edges"] = {read_text(disk, *path, most_edges_bytes), place};
  } catch (const Error& error) {
    problems.add(place, fmt::format("exchange.file cannot be used: {}", error.what()));
    exchange.items["graph"].value = std::string("ring");  // so that nobody misses the edges too
  }
  exchange.items.erase("file");
}

}  // namespace echelon
