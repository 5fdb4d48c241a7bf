#pragma once
// The table in tests/run/pins.txt: what every setting of a shipped system or plan is there for, and which tests look at
// what makes it itself.

#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "tests/support/source_path.h"
#include "world/os/disk.h"

namespace echelon::test {

// "exchange.two_level/false=fewer_bytes,sooner@hosts", "exchange.groups~Hogwild.RacesAndStillLearns"
struct Pin {
  std::string setting = {};
  std::string other = {};                 // the value in its place; empty: it is left out
  std::vector<std::string> effects = {};  // that the shipped value has
  std::vector<std::string> setup = {};    // where they are seen
  std::string test = {};                  // that looks at the setting, where no such run can
};

struct Pins {
  std::vector<Pin> pins;
  std::vector<std::string> tests;  // "Suite.Name"
};

inline std::vector<std::string> pin_words(const std::string& text, char between) {
  std::vector<std::string> words;
  for (const std::string_view word : split(text, between))
    if (!word.empty()) words.emplace_back(word);
  return words;
}

inline Pin read_pin(const std::string& word) {
  if (const std::size_t tilde = word.find('~'); tilde != std::string::npos)
    return {.setting = word.substr(0, tilde), .other = {}, .effects = {}, .setup = {}, .test = word.substr(tilde + 1)};
  const std::size_t equals = word.find('='), at = word.find('@');
  if (equals == std::string::npos) fail("tests/run/pins.txt: '{}' says nothing of a setting", word);
  const std::string setting = word.substr(0, equals);
  const std::size_t slash = setting.find('/');
  Pin pin{.setting = setting.substr(0, slash), .other = {}, .effects = {}, .setup = {}, .test = {}};
  if (slash != std::string::npos) pin.other = setting.substr(slash + 1);
  pin.effects = pin_words(word.substr(equals + 1, at == std::string::npos ? at : at - equals - 1), ',');
  if (at != std::string::npos) pin.setup = pin_words(word.substr(at + 1), '+');
  return pin;
}

// Lines that begin with a blank belong to the name above them. Names of plans begin with "plan:".
inline std::map<std::string, Pins> pinned() {
  std::map<std::string, Pins> all;
  std::istringstream lines(read_text(*make_real_disk(), source_path("tests/run/pins.txt")));
  std::string name;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    std::istringstream words(line);
    if (!line.starts_with(' ')) words >> name;
    Pins& pins = all[name];
    for (std::string word; words >> word;)
      if (word.starts_with("by="))
        pins.tests.push_back(word.substr(3));
      else
        pins.pins.push_back(read_pin(word));
  }
  return all;
}

// Every test of tests/ that `make test` runs, as "Suite.Name".
inline std::set<std::string> known_tests() {
  static const std::regex macro(R"(TEST(?:_P|_F)?\(\s*(\w+),\s*(\w+)\))");
  std::set<std::string> tests;
  const auto disk = make_real_disk();
  for (const std::string& room : disk->list(source_path("tests"))) {
    const std::string folder = source_path("tests/" + room);
    if (!disk->is_directory(folder)) continue;
    for (const std::string& file : disk->list(folder)) {
      if (!file.ends_with("_test.cpp")) continue;
      const std::string text = read_text(*disk, folder + "/" + file);
      for (std::sregex_iterator it(text.begin(), text.end(), macro), end; it != end; ++it) {
        const std::string suite = (*it)[1], test = (*it)[2];
        if (!suite.starts_with("Slow") && !test.starts_with("Slow")) tests.insert(suite + "." + test);
      }
    }
  }
  return tests;
}

}  // namespace echelon::test
