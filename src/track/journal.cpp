#include "track/journal.h"

#include <algorithm>

#include "base/error.h"

namespace echelon {

namespace {
constexpr std::uint64_t longest_journal = std::uint64_t{64} << 20;
}

std::vector<JournalLine> parse_journal(std::string_view text, const std::string& path) {
  std::vector<JournalLine> lines;
  for (std::size_t at = 0, number = 1; at < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (line.empty()) continue;
    const std::string where = fmt::format("{}:{}", path, number);
    try {
      const Json json = parse_json(line, where, {.depth = 3, .values = 64});
      const std::string action = json.at("action").get<std::string>();
      if (action == "generation" && json.contains("servers") && !lines.empty() &&
          lines.back().request.servers == "quickest")  // which that was
        lines.back().request.servers = json.at("servers").get<std::string>(), check_control(lines.back().request);
      if (action != "rate" && action != "resize" && action != "switch") continue;
      const std::int64_t step = json.at("step").get<std::int64_t>();
      if (step < 0) bad_input("{}: there is no step {}", where, step);
      lines.push_back({step, parse_control(line)});
    } catch (const Json::exception& problem) {
      bad_input("{}: is no line of a journal ({})", where, problem.what());
    }
  }
  std::ranges::stable_sort(lines, {}, &JournalLine::step);
  return lines;
}

std::vector<JournalLine> read_journal(Disk& disk, const std::string& path) {
  return parse_journal(read_text(disk, path, longest_journal), path);
}

}  // namespace echelon
