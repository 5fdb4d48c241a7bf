#include "web/reply.h"

#include <charconv>
#include <cmath>

#include "base/error.h"

namespace echelon::web {

std::string Query::text(const std::string& key, const std::string& fallback) const {
  const auto it = values.find(key);
  return it == values.end() ? fallback : it->second;
}

std::vector<std::string> Query::texts(const std::string& key) const {
  std::vector<std::string> all;
  for (auto [it, end] = values.equal_range(key); it != end; ++it) all.push_back(it->second);
  return all;
}

double Query::number(const std::string& key, double fallback) const {
  const std::string written = text(key);
  if (written.empty()) return fallback;
  double value = 0;
  const auto [end, error] = std::from_chars(written.data(), written.data() + written.size(), value);
  if (error != std::errc() || end != written.data() + written.size() || !std::isfinite(value))
    bad_input("'{}' is no number for {}", written.substr(0, 40), key);
  return value;
}

Reply json_reply(const Json& json, int status) {
  return {status, "application/json", json.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

Reply error_reply(int status, const std::string& text) { return json_reply({{"error", text}}, status); }

}  // namespace echelon::web
