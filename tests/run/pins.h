#pragma once
// The table in tests/run/pins.txt: what every setting of a shipped system is there for.

#include <map>
#include <sstream>
#include <string>

#include "base/error.h"
#include "tests/support/source_path.h"
#include "world/os/disk.h"

namespace echelon::test {

using Pins = std::map<std::string, std::string>;  // a word for each setting

inline std::map<std::string, Pins> pinned_systems() {
  std::map<std::string, Pins> systems;
  std::istringstream lines(read_text(*make_real_disk(), source_path("tests/run/pins.txt")));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string name;
    words >> name;
    systems[name];
    for (std::string word; words >> word;) {
      const std::size_t at = word.find('=');
      if (at == std::string::npos) fail("tests/run/pins.txt: '{}' of {} says nothing of a setting", word, name);
      systems[name][word.substr(0, at)] = word.substr(at + 1);
    }
  }
  return systems;
}

}  // namespace echelon::test
