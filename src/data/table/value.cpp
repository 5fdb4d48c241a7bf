#include "data/table/value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace echelon::data {

namespace {

char lower_case(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_word(std::string_view cell, std::string_view lower) {
  return std::ranges::equal(cell, lower, {}, lower_case);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Digits in groups of three, the first group of one to three: 1,234,567. `end` receives where they stop.
bool grouped(std::string_view s, char separator, std::size_t& end) {
  std::size_t at = 0;
  while (at < s.size() && is_digit(s[at])) ++at;
  if (at == 0 || at > 3 || at == s.size() || s[at] != separator) return false;
  while (at < s.size() && s[at] == separator) {
    for (std::size_t i = 1; i <= 3; ++i)
      if (at + i >= s.size() || !is_digit(s[at + i])) return false;
    at += 4;
  }
  end = at;
  return at == s.size() || !is_digit(s[at]);
}

constexpr std::size_t longest_number = 64;

// Reads `count` digits at `at` and moves on.
std::optional<int> digits(std::string_view s, std::size_t& at, std::size_t least, std::size_t most) {
  int value = 0;
  std::size_t n = 0;
  while (n < most && at + n < s.size() && is_digit(s[at + n])) value = value * 10 + (s[at + n++] - '0');
  if (n < least) return {};
  at += n;
  return value;
}

// Days from 1970-01-01 to a date of the Gregorian calendar. The year is taken to begin in March, so that the day that
// some years have more is the last of it.
std::int64_t days_from_civil(std::int64_t year, int month, int day) {
  const std::int64_t y = month <= 2 ? year - 1 : year, era = (y >= 0 ? y : y - 399) / 400, in_era = y - era * 400;
  const std::int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + in_era * 365 + in_era / 4 - in_era / 100 + of_year - 719468;
}

bool leap(int year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

int days_in(int year, int month) {
  constexpr std::array days = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return month == 2 && leap(year) ? 29 : days[static_cast<std::size_t>(month - 1)];
}

// What follows the date: nothing, or T or blanks and hours, minutes, perhaps seconds and a Z.
bool read_time(std::string_view s, std::size_t at, CellDate& date) {
  if (at == s.size()) return true;
  if (s[at] != 'T' && s[at] != ' ') return false;
  ++at;
  const auto hour = digits(s, at, 1, 2);
  if (!hour || *hour > 23 || at >= s.size() || s[at] != ':') return false;
  ++at;
  const auto minute = digits(s, at, 2, 2);
  if (!minute || *minute > 59) return false;
  double second = 0;
  if (at < s.size() && s[at] == ':') {
    ++at;
    const auto whole = digits(s, at, 2, 2);
    if (!whole || *whole > 60) return false;
    second = *whole;
    if (at < s.size() && s[at] == '.') {
      double unit = 0.1;
      for (++at; at < s.size() && is_digit(s[at]); ++at, unit /= 10) second += unit * (s[at] - '0');
    }
  }
  if (at < s.size() && s[at] == 'Z') ++at;
  date.has_time = true;
  date.days += (*hour * 3600.0 + *minute * 60.0 + second) / 86400;
  return at == s.size();
}

}  // namespace

std::string_view trimmed_cell(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

bool is_missing_cell(std::string_view cell, std::span<const std::string> more) {
  cell = trimmed_cell(cell);
  if (cell.empty()) return true;
  if (cell.size() <= 5)
    for (const std::string_view word : {"na", "n/a", "nan", "null", "none", "nil", "?", "-", "#n/a"})
      if (same_word(cell, word)) return true;
  return std::ranges::find(more, cell) != more.end();
}

std::optional<double> cell_number(std::string_view cell, char decimal) {
  std::string_view s = trimmed_cell(cell);
  if (s.starts_with('+')) s.remove_prefix(1);
  if (s.empty() || s.size() > longest_number) return {};
  const bool minus = s.front() == '-';
  const std::string_view size = minus ? s.substr(1) : s;
  if (size.empty() || !(is_digit(size.front()) || size.front() == decimal)) return {};
  std::array<char, longest_number> text;
  std::size_t n = 0, end = 0;
  const char separator = decimal == '.' ? ',' : '.';
  const bool groups = grouped(size, separator, end);
  if (minus) text[n++] = '-';
  for (std::size_t i = 0; i < size.size(); ++i) {
    if (groups && i < end && size[i] == separator) continue;
    if (decimal != '.' && size[i] == '.') return {};
    text[n++] = size[i] == decimal ? '.' : size[i];
  }
  double value = 0;
  const auto [last, error] = std::from_chars(text.data(), text.data() + n, value);
  if (error != std::errc{} || last != text.data() + n || !std::isfinite(value)) return {};
  return value;
}

std::optional<bool> cell_boolean(std::string_view cell) {
  cell = trimmed_cell(cell);
  for (const std::string_view word : {"true", "yes", "t", "y"})
    if (same_word(cell, word)) return true;
  for (const std::string_view word : {"false", "no", "f", "n"})
    if (same_word(cell, word)) return false;
  return {};
}

std::string_view name_of(DateOrder order) {
  constexpr std::array<std::string_view, 3> names = {"year first", "day first", "month first"};
  return names[static_cast<std::size_t>(order)];
}

std::optional<CellDate> cell_date(std::string_view cell, DateOrder order) {
  const std::string_view s = trimmed_cell(cell);
  const bool year_first = order == DateOrder::year_first;
  std::size_t at = 0;
  const auto first = year_first ? digits(s, at, 4, 4) : digits(s, at, 1, 2);
  if (!first || at >= s.size()) return {};
  const char separator = s[at];
  const bool allowed = separator == '-' || separator == '/' || (separator == '.' && order == DateOrder::day_first);
  if (!allowed) return {};
  ++at;
  const auto second = digits(s, at, 1, 2);
  if (!second || at >= s.size() || s[at] != separator) return {};
  ++at;
  const auto third = year_first ? digits(s, at, 1, 2) : digits(s, at, 4, 4);
  if (!third) return {};
  const int year = year_first ? *first : *third;
  const int month = order == DateOrder::month_first ? *first : *second;
  const int day = year_first ? *third : order == DateOrder::day_first ? *first : *second;
  if (month < 1 || month > 12 || day < 1 || day > days_in(year, month)) return {};
  CellDate date{.days = static_cast<double>(days_from_civil(year, month, day))};
  if (!read_time(s, at, date)) return {};
  return date;
}

DateParts parts_of_date(double days) {
  const double whole = std::floor(days);
  const auto since = static_cast<std::int64_t>(whole);
  const std::int64_t z = since + 719468, era = (z >= 0 ? z : z - 146096) / 146097, in_era = z - era * 146097;
  const std::int64_t years = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
  const std::int64_t of_year = in_era - (365 * years + years / 4 - years / 100), m = (5 * of_year + 2) / 153;
  DateParts p{};
  p.day = static_cast<int>(of_year - (153 * m + 2) / 5 + 1);
  p.month = static_cast<int>(m < 10 ? m + 3 : m - 9);
  p.year = static_cast<int>(years + era * 400 + (p.month <= 2 ? 1 : 0));
  p.day_of_year = static_cast<int>(since - days_from_civil(p.year, 1, 1));
  p.weekday = static_cast<int>(((since + 3) % 7 + 7) % 7);
  p.time = days - whole;
  return p;
}

CirclePoint on_circle(double phase) {
  phase -= std::floor(phase);
  // The nearest quarter of a turn, and an angle of at most an eighth from there.
  const int quarter = static_cast<int>(std::floor(4 * phase + 0.5));
  const double x = (phase - 0.25 * quarter) * 6.283185307179586, x2 = x * x;
  double sine = 0, cosine = 0;
  for (int k = 8; k >= 1; --k) {  // Horner, from the smallest term on
    sine = (1 + sine) * -x2 / ((2.0 * k) * (2.0 * k + 1));
    cosine = (1 + cosine) * -x2 / ((2.0 * k - 1) * (2.0 * k));
  }
  sine = x * (1 + sine), cosine = 1 + cosine;
  switch (quarter % 4) {
    case 0: return {sine, cosine};
    case 1: return {cosine, -sine};
    case 2: return {-sine, -cosine};
    default: return {-cosine, sine};
  }
}

}  // namespace echelon::data
