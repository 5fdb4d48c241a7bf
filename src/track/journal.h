#pragma once
// journal.jsonl of a run, read back: what was changed in it while it ran, and after which step. A run that is given the
// lines of another makes the same changes at the same steps, and so the same weights.

#include <cstdint>
#include <string>
#include <vector>

#include "track/control.h"

namespace echelon {

struct JournalLine {
  std::int64_t step = 0;  // that were done when it was changed
  ControlRequest request;
};

// The lines that decide about the weights (rate, resize, switch), by step. BadInput if a line is none.
std::vector<JournalLine> read_journal(Disk& disk, const std::string& path);
std::vector<JournalLine> parse_journal(std::string_view text, const std::string& path);

}  // namespace echelon
