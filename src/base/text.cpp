#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <vector>

namespace echelon {

int edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the usual table: the one before the previous is needed for swaps.
  std::vector<int> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

namespace {

// Capitals, hyphens and underscores are not what people misspell.
std::string folded(std::string_view word) {
  std::string f(word);
  for (char& c : f) c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return f;
}

}  // namespace

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::size_t too_long = 200;  // not a misspelt word but something else; the table would be large
  if (word.empty() || word.size() > too_long) return std::nullopt;
  const std::string wanted = folded(word);
  const std::string* best = nullptr;
  int best_distance = 0;
  for (const auto& candidate : candidates) {
    if (candidate.size() > too_long) continue;
    const int distance = edit_distance(wanted, folded(candidate));
    if (!best || distance < best_distance) best = &candidate, best_distance = distance;
  }
  // About one slip in three letters, and always at least one letter right.
  const auto letters = std::max(wanted.size(), best ? best->size() : 0);
  if (!best || best_distance > std::max(1, static_cast<int>(letters) / 3)) return std::nullopt;
  if (best_distance >= static_cast<int>(letters)) return std::nullopt;
  return *best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  const auto guess = nearest(word, candidates);
  return guess ? fmt::format("; did you mean '{}'?", *guess) : "";
}

namespace {

std::string scaled(double number, double unit, std::span<const char* const> names) {
  if (!std::isfinite(number)) return std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
  std::size_t i = 0;
  double shown = std::abs(number);
  // 999.6 would be printed as 1000: it belongs to the next unit already.
  while (shown >= (i == 0 ? unit - 0.5 : unit * 0.9995) && i + 1 < names.size()) shown /= unit, ++i;
  const bool whole = i == 0 && shown == std::floor(shown);
  const auto digits = whole || shown >= 99.95 ? fmt::format("{:.0f}", shown) : fmt::format("{:.1f}", shown);
  return fmt::format("{}{}{}{}", number < 0 ? "-" : "", digits, *names[i] ? " " : "", names[i]);
}

}  // namespace

std::string human_count(double number) {
  constexpr std::array names{"", "k", "M", "G", "T"};
  return scaled(number, 1000, names);
}

std::string human_bytes(double bytes) {
  constexpr std::array names{"B", "KiB", "MiB", "GiB", "TiB"};
  return scaled(bytes, 1024, names);
}

std::string human_duration(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  if (seconds < 0) return fmt::format("-{}", human_duration(-seconds));
  if (seconds == 0) return "0 s";
  if (seconds < 0.9995e-3) return fmt::format("{:.3g} µs", seconds * 1e6);
  if (seconds < 0.09995) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  if (seconds > 1e15) return "forever";
  const auto s = static_cast<std::int64_t>(std::llround(seconds));
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} m {:02} s", s / 60, s % 60);
  const std::int64_t m = (s + 30) / 60;
  if (m < 24 * 60) return fmt::format("{} h {:02} m", m / 60, m % 60);
  const std::int64_t h = (s + 1800) / 3600;
  return fmt::format("{} d {} h", h / 24, h % 24);
}

namespace {

// One step through a terminal's text: how many bytes belong together and how many columns they take.
struct Glyph {
  std::size_t bytes;
  int columns;
};

bool is_wide(char32_t c) {
  return (c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) || (c >= 0xac00 && c <= 0xd7a3) ||
         (c >= 0xf900 && c <= 0xfaff) || (c >= 0xfe30 && c <= 0xfe6f) || (c >= 0xff00 && c <= 0xff60) ||
         (c >= 0x1f300 && c <= 0x1faff) || (c >= 0x20000 && c <= 0x3fffd);
}

Glyph glyph_at(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead == 0x1b && text.size() > 1 && text[1] == '[') {
    std::size_t n = 2;
    while (n < text.size() && !(text[n] >= '@' && text[n] <= '~')) ++n;
    return {std::min(n + 1, text.size()), 0};
  }
  const std::size_t length = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  if (length > text.size()) return {1, 1};
  if (length == 1) return {1, lead < 0x20 || lead == 0x7f ? 0 : 1};
  char32_t c = lead & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return {1, 1};  // not UTF-8: a byte by itself
    c = (c << 6) | (static_cast<unsigned char>(text[i]) & 0x3f);
  }
  const bool combining = (c >= 0x300 && c <= 0x36f) || (c >= 0xfe00 && c <= 0xfe0f) || c == 0x200d || c == 0x200b;
  return {length, combining ? 0 : is_wide(c) ? 2 : 1};
}

}  // namespace

int display_width(std::string_view text) {
  int columns = 0;
  while (!text.empty()) {
    const Glyph g = glyph_at(text);
    columns += g.columns;
    text.remove_prefix(g.bytes);
  }
  return columns;
}

std::string fit(std::string_view text, int columns) {
  const int width = display_width(text);
  if (width <= columns) return std::string(text) + std::string(static_cast<std::size_t>(columns - width), ' ');
  std::string kept;
  int used = 0;
  bool full = columns <= 0;
  while (!text.empty()) {
    const Glyph g = glyph_at(text);
    if (g.columns == 0) {
      kept += text.substr(0, g.bytes);  // a colour may have to be switched off again behind the cut
    } else if (!full && used + g.columns <= columns - 1) {
      kept += text.substr(0, g.bytes);
      used += g.columns;
    } else if (!full) {
      kept += "…";
      ++used;
      full = true;
    }
    text.remove_prefix(g.bytes);
  }
  return kept + std::string(static_cast<std::size_t>(std::max(0, columns - used)), ' ');
}

std::string wrapped(std::string_view text, int columns, int indent, int hanging) {
  std::string out, line(static_cast<std::size_t>(indent), ' ');
  bool empty = true;
  for (const std::string_view word : split(text, ' ')) {
    if (word.empty() && !empty) continue;
    if (!empty && display_width(line) + 1 + display_width(word) > columns) {
      out += line + "\n";
      line.assign(static_cast<std::size_t>(indent + hanging), ' ');
      empty = true;
    }
    line += (empty ? "" : " ") + std::string(word);
    empty = false;
  }
  return out + line + "\n";
}

std::string shell_quoted(std::string_view word) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./,:=@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string_view::npos) return std::string(word);
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string utf8(char32_t c) {
  std::string s;
  if (c < 0x80) return s += static_cast<char>(c);
  if (c < 0x800) {
    s += static_cast<char>(0xc0 | (c >> 6));
  } else {
    if (c < 0x10000) {
      s += static_cast<char>(0xe0 | (c >> 12));
    } else {
      s += static_cast<char>(0xf0 | (c >> 18));
      s += static_cast<char>(0x80 | ((c >> 12) & 0x3f));
    }
    s += static_cast<char>(0x80 | ((c >> 6) & 0x3f));
  }
  return s += static_cast<char>(0x80 | (c & 0x3f));
}

}  // namespace echelon
