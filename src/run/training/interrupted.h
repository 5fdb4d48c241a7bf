#pragma once
// Why a run has ended, where it could go on: what `stopped_by` says then. Other reasons are "end", "target" and
// "patience".

#include <string_view>

namespace echelon {

// "signal": Ctrl-C, SIGTERM; "request": somebody asked for it on the page (track/control.h).
inline bool was_interrupted(std::string_view stopped_by) { return stopped_by == "signal" || stopped_by == "request"; }

}  // namespace echelon
