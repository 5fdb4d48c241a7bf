// Any bytes in the place of a run's journal are refused, or lines that can be carried out, by step.

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "track/journal.h"

int fuzz_journal(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  try {
    const auto lines = parse_journal({reinterpret_cast<const char*>(data), size}, "journal.jsonl");
    invariant(std::ranges::is_sorted(lines, {}, &JournalLine::step), "lines are by step");
    for (const JournalLine& line : lines) check_control(line.request);
  } catch (const BadInput&) {
  }
  return 0;
}
