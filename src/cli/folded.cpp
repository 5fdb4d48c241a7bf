#include "cli/folded.h"

#include <algorithm>

#include "base/text.h"
#include "world/os/host.h"

namespace echelon::cli {

namespace {

std::string folded_line(std::string_view text, int columns, int hanging) {
  if (display_width(text) <= columns) return std::string(text);
  const std::string start(static_cast<std::size_t>(hanging), ' ');
  std::string out, line;
  bool begun = false;
  const auto put = [&](std::string_view words, std::size_t blanks) {
    if (begun && display_width(line) + static_cast<int>(blanks) + display_width(words) > columns) {
      out += line + "\n";
      line = start, blanks = 0;
    }
    line.append(blanks, ' ').append(words);
    begun = true;
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t first = std::min(text.find_first_not_of(' ', at), text.size()), blanks = first - at;
    at = std::min(text.find("  ", first), text.size());
    const std::string_view group = text.substr(first, at - first);
    if (hanging + display_width(group) <= columns) {
      put(group, blanks);
      continue;
    }
    std::size_t before = blanks;
    for (const std::string_view word : split(group, ' ')) put(word, before), before = 1;
  }
  return out + line;
}

}  // namespace

std::string folded(std::string_view text, int columns, int hanging) {
  std::string out;
  for (bool first = true; const std::string_view line : split(text, '\n')) {
    out += (first ? "" : "\n") + folded_line(line, columns, hanging);
    first = false;
  }
  return out;
}

std::string for_terminal(int descriptor, std::string text, int hanging) {
  return is_terminal(descriptor) ? folded(text, terminal_columns(descriptor), hanging) : text;
}

}  // namespace echelon::cli
