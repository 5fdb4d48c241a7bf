#pragma once
// A request and its answer, as the page's interface sees them: no sockets, so that every question can be asked in a
// test.

#include <map>
#include <string>
#include <vector>

#include "base/json.h"

namespace echelon::web {

struct Query {
  std::multimap<std::string, std::string> values;

  std::string text(const std::string& key, const std::string& fallback = "") const;
  std::vector<std::string> texts(const std::string& key) const;
  // BadInput if it is there and no finite number.
  double number(const std::string& key, double fallback) const;
};

struct Reply {
  int status = 200;
  std::string type = "application/json", body = {};
};

Reply json_reply(const Json& json, int status = 200);
// {"error": text}
Reply error_reply(int status, const std::string& text);

}  // namespace echelon::web
