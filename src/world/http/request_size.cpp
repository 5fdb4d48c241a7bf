#include "world/http/request_size.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>

namespace echelon::http {

namespace {

RequestSize refusal(int status, const char* why) { return {.bytes = 0, .refused = status, .why = why}; }

bool same_word(std::string_view a, std::string_view lower) {
  return a.size() == lower.size() && std::equal(a.begin(), a.end(), lower.begin(), [](char x, char y) {
           return std::tolower(static_cast<unsigned char>(x)) == y;
         });
}

bool is_token(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

std::string_view trimmed_value(std::string_view value) {
  const auto first = value.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return value.substr(first, value.find_last_not_of(" \t") - first + 1);
}

std::optional<std::size_t> length_in(std::string_view digits) {
  if (digits.empty() || digits.size() > 15) return {};
  std::size_t length = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return {};
    length = 10 * length + static_cast<std::size_t>(c - '0');
  }
  return length;
}

}  // namespace

RequestSize request_size(std::string_view text, const RequestLimits& limits) {
  std::optional<std::size_t> length;
  bool waits_for_body = false;
  const std::string_view head = text.substr(0, limits.head_bytes);
  for (std::size_t begin = 0; begin < head.size();) {
    const std::size_t end = head.find('\n', begin);
    if (end == std::string_view::npos) break;
    std::string_view line = head.substr(begin, end - begin);
    const bool is_first = begin == 0;
    begin = end + 1;
    if (line.empty() || line.back() != '\r') return refusal(400, "a line of the head does not end with CR LF");
    line.remove_suffix(1);
    if (is_first && line.empty()) return refusal(400, "the request line is empty");
    if (is_first) continue;
    if (line.empty()) {
      const std::size_t body = length.value_or(0);
      if (body > limits.body_bytes) return refusal(413, "the body is longer than allowed");
      return {.bytes = begin + body, .refused = 0, .why = "", .waits_for_body = waits_for_body};
    }
    const std::size_t colon = line.find(':');
    const std::string_view name = line.substr(0, colon);
    if (colon == std::string_view::npos || !is_token(name)) return refusal(400, "a header has no proper name");
    const std::string_view value = trimmed_value(line.substr(colon + 1));
    if (same_word(name, "transfer-encoding")) return refusal(411, "send the body with a Content-Length");
    if (same_word(name, "expect")) waits_for_body = same_word(value, "100-continue");
    if (!same_word(name, "content-length")) continue;
    if (length) return refusal(400, "there are two Content-Length headers");
    length = length_in(value);
    if (!length) return refusal(400, "Content-Length is no number");
  }
  if (text.size() >= limits.head_bytes) return refusal(431, "the head is longer than allowed");
  return {};
}

}  // namespace echelon::http
