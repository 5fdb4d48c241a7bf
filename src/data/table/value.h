#pragma once
// What a cell of a table can be: a number, a truth value, a date, or nothing. Pure functions on text without quotes,
// thread-safe; they allocate nothing.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace echelon::data {

// Without blanks and tabs on both sides.
std::string_view trimmed_cell(std::string_view cell);

// Whether the cell stands for a value that is not there: nothing, NA, N/A, NaN, null, none, nil, ?, -, #N/A (in any
// case), or one of `more`.
bool is_missing_cell(std::string_view cell, std::span<const std::string> more = {});

// A finite number, with a point or (`decimal` ',') a comma before the fraction. Groups of three digits may be separated
// by the other of the two: 1,234.5 or 1.234,5. Nothing else is taken.
std::optional<double> cell_number(std::string_view cell, char decimal = '.');

// true, false, yes, no, t, f, y, n in any case.
std::optional<bool> cell_boolean(std::string_view cell);

// In which order a date's numbers stand. Year first: 2024-03-17, 2024/03/17. Day first: 17.03.2024, 17/03/2024,
// 17-03-2024. Month first: 03/17/2024, 03-17-2024.
enum class DateOrder : std::uint8_t { year_first, day_first, month_first };
std::string_view name_of(DateOrder order);

struct CellDate {
  double days = 0;        // since 1970-01-01; hours, minutes and seconds are a part of a day
  bool has_time = false;  // whether it names them: 2024-03-17T12:30, 2024-03-17 12:30:05.5Z. Zones other than Z: none
};
std::optional<CellDate> cell_date(std::string_view cell, DateOrder order);

// The parts of a date, from its days since 1970-01-01: month 1 to 12, day of the year from 0 on, weekday 0 (Monday) to
// 6, and the share of the day that is over.
struct DateParts {
  int year, month, day, day_of_year, weekday;
  double time;
};
DateParts parts_of_date(double days);

// Sine and cosine of a phase in turns: what comes round again, such as a weekday, as a point on a circle. Additions and
// products only, so that every machine gives the same bits.
struct CirclePoint {
  double sine, cosine;
};
CirclePoint on_circle(double phase);

}  // namespace echelon::data
