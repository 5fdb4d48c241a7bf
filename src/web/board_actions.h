#pragma once
// What the page may change, each a POST with a JSON object. The token has been checked before (web/guard.h).
//
//   /api/label    {"run", "add": [tags], "remove": [tags], "note", "star"}; what is absent stays
//   /api/trash    {"run"}
//   /api/control  {"run", "action": "pause" | "resume" | "checkpoint" | "stop" | "rate", "value"}: for a live run
//                 (track/control.h)

#include <string>

#include "web/board_api.h"

namespace echelon::web {

inline constexpr std::size_t longest_action = 64u << 10;

Reply act(BoardApi& api, const std::string& path, const std::string& body);

}  // namespace echelon::web
