#include "base/json.h"

#include <string>
#include <unordered_set>
#include <vector>

#include "base/error.h"

namespace echelon {

namespace {

// Without the library's own name of the problem: "[json.exception.parse_error.101] ".
std::string plain_reason(const Json::exception& e) {
  const std::string_view text = e.what();
  const std::size_t end = text.find("] ");
  return std::string(text.starts_with("[json.exception") && end != text.npos ? text.substr(end + 2) : text);
}

}  // namespace

Json parse_json(std::string_view text, std::string_view where, JsonLimits limits) {
  std::vector<std::unordered_set<std::string>> keys;  // of the objects we are inside of
  std::size_t values = 0;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      if (depth >= limits.depth) bad_input("{}: nested deeper than {} levels", where, limits.depth);
    }
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key && !keys.back().insert(parsed.get_ref<const std::string&>()).second)
      bad_input("{}: the key {} occurs twice in one object", where, parsed.dump());
    if (++values > limits.values) bad_input("{}: more than {} values", where, limits.values);
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), watch);
  } catch (const Json::parse_error& e) {
    bad_input("{}: byte {}: not valid JSON ({})", where, e.byte, plain_reason(e));
  } catch (const Json::exception& e) {
    bad_input("{}: not valid JSON ({})", where, plain_reason(e));
  }
}

}  // namespace echelon
