// Any environment is either refused with BadInput or says which rank of how many this is. The input's lines are
// NAME=VALUE.

#include <cstdint>
#include <map>
#include <string>

#include "base/error.h"
#include "base/text.h"
#include "world/os/environment.h"

int fuzz_environment(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  std::map<std::string, std::string, std::less<>> variables;
  for (const std::string_view line : split({reinterpret_cast<const char*>(data), size}, '\n'))
    if (const auto equals = line.find('='); equals != std::string_view::npos)
      variables.emplace(line.substr(0, equals), line.substr(equals + 1));
  const auto read = [](const auto& from) {
    return read_rank_environment([&](const std::string& name) {
      const auto it = from.find(name);
      return it == from.end() ? std::string() : it->second;
    });
  };
  try {
    const RankEnvironment e = read(variables);
    invariant(e.rank >= 0 && e.rank < e.size && e.local_rank >= 0 && e.local_rank < e.local_size,
              "a rank is one of all");
    invariant(e.master_port >= 0 && e.master_port <= 65535, "a port is one");
    std::map<std::string, std::string> again;
    for (const auto& [name, value] : torchrun_variables(e)) again[name] = value;
    RankEnvironment passed_on = read(again);
    passed_on.from = e.from;
    invariant(passed_on == e, "what a launcher says changes when passed on");
  } catch (const BadInput&) {
  }
  return 0;
}
