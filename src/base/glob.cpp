#include "base/glob.h"

#include <algorithm>

namespace echelon {

namespace {

// What each star stands for, the shortest first; false if the pattern does not fit. Goes back to the last star only,
// which is enough: what an earlier one could take more of, the last one can take too.
bool match(std::string_view pattern, std::string_view name, std::vector<std::string_view>* stars) {
  std::size_t p = 0, n = 0;
  std::size_t star = std::string_view::npos, taken = 0;  // the last star, and where what it stands for ends
  std::vector<std::size_t> begins, ends;
  while (n < name.size() || p < pattern.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      begins.push_back(n), ends.push_back(n);
      star = p++, taken = n;
    } else if (p < pattern.size() && n < name.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p, ++n;
    } else if (star != std::string_view::npos && taken < name.size()) {
      n = ++taken, p = star + 1;
      ends.back() = taken;
    } else {
      return false;
    }
  }
  if (stars)
    for (std::size_t i = 0; i < begins.size(); ++i) stars->push_back(name.substr(begins[i], ends[i] - begins[i]));
  return true;
}

}  // namespace

bool fits(std::string_view pattern, std::string_view name) {
  return match(pattern, name, nullptr) || match(std::string(pattern) + ".*", name, nullptr);
}

bool fits_layer(std::string_view pattern, std::string_view name) {
  if (pattern.starts_with('.')) return fits(pattern.substr(1), name);
  for (std::string_view rest = name;; rest.remove_prefix(rest.find('.') + 1)) {
    if (fits(pattern, rest)) return true;
    if (rest.find('.') == std::string_view::npos) return false;
  }
}

bool fits_any(const std::vector<std::string>& patterns, std::string_view name) {
  return std::ranges::any_of(patterns, [&](const std::string& p) { return fits_layer(p, name); });
}

std::vector<std::string> fitting_none(const std::vector<std::string>& patterns, const std::vector<std::string>& names) {
  std::vector<std::string> none;
  for (const std::string& p : patterns)
    if (std::ranges::none_of(names, [&](const std::string& n) { return fits_layer(p, n); })) none.push_back(p);
  return none;
}

std::optional<std::string> renamed(std::string_view name, std::string_view from, std::string_view to) {
  std::vector<std::string_view> stars;
  if (!match(from, name, &stars)) return std::nullopt;
  std::string out;
  std::size_t next = 0;
  for (const char c : to) {
    if (c == '*' && next < stars.size())
      out += stars[next++];
    else
      out += c;
  }
  return out;
}

}  // namespace echelon
