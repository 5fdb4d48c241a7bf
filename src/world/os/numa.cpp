#include "world/os/numa.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>

namespace echelon {

namespace {

std::vector<int> usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  for (int c = 0; c < CPU_SETSIZE; ++c)
    if (CPU_ISSET(c, &set)) cores.push_back(c);
  return cores;
}

std::vector<int> list_in(const std::string& file) {
  std::string text;
  std::ifstream in(file);
  std::getline(in, text);
  return parse_core_list(text);
}

}  // namespace

std::vector<int> parse_core_list(std::string_view text) {
  std::vector<int> cores;
  while (!text.empty()) {
    std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    int first = 0, last = 0;
    const auto [at, error] = std::from_chars(part.data(), part.data() + part.size(), first);
    if (error != std::errc() || first < 0) continue;
    last = first;
    if (at != part.data() + part.size() && *at == '-') std::from_chars(at + 1, part.data() + part.size(), last);
    for (int c = first; c <= last && c < CPU_SETSIZE; ++c) cores.push_back(c);
  }
  return cores;
}

std::vector<std::vector<int>> numa_nodes(const std::string& folder) {
  const std::vector<int> usable = usable_cores();
  std::vector<std::vector<int>> nodes;
  for (const int node : list_in(folder + "/online")) {
    std::vector<int> cores = list_in(folder + "/node" + std::to_string(node) + "/cpulist");
    std::erase_if(cores, [&](int c) { return std::ranges::find(usable, c) == usable.end(); });
    if (!cores.empty()) nodes.push_back(std::move(cores));
  }
  if (nodes.empty()) nodes.push_back(usable);
  return nodes;
}

void bind_this_thread(std::span<const int> cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int c : cores) CPU_SET(static_cast<std::size_t>(c), &set);
  sched_setaffinity(0, sizeof set, &set);
}

}  // namespace echelon
