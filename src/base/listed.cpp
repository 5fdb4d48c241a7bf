#include "base/listed.h"

#include <fmt/format.h>

#include <algorithm>

namespace echelon {

std::string listed(std::span<const std::string> words, std::size_t most) {
  constexpr std::size_t longest = 60;
  std::string out;
  for (const std::string& word : words.first(std::min(most, words.size()))) {
    if (!out.empty()) out += ", ";
    out += word.size() > longest ? word.substr(0, longest) + "..." : word;
  }
  if (words.size() > most) out += fmt::format(" and {} more", words.size() - most);
  return out;
}

}  // namespace echelon
