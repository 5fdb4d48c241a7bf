#include "cli/answers/column_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/listed.h"
#include "base/text.h"

namespace echelon::cli {

namespace {

constexpr std::size_t few = 20;  // different numbers that are told apart one by one
constexpr const char* missing = "(missing)";

std::function<std::string(std::uint64_t)> by_quarter(const data::TableColumn& column) {
  std::vector<double> sorted;
  for (const double x : column.numbers)
    if (!std::isnan(x)) sorted.push_back(x);
  std::ranges::sort(sorted);
  std::vector<double> borders;
  for (std::size_t quarter = 0; quarter <= 4 && !sorted.empty(); ++quarter)
    borders.push_back(sorted[std::min(sorted.size() - 1, quarter * sorted.size() / 4)]);
  return [&column, borders](std::uint64_t row) -> std::string {
    const double x = column.numbers[row];
    if (std::isnan(x)) return missing;
    std::size_t quarter = 0;
    while (quarter < 3 && x >= borders[quarter + 1]) ++quarter;
    return fmt::format("{}. {:g} to {:g}", quarter + 1, borders[quarter], borders[quarter + 1]);
  };
}

}  // namespace

std::function<std::string(std::uint64_t)> value_texts(const data::TableFile& file, const std::string& name) {
  const data::TableColumn* column = file.table.find(name);
  if (!column) {
    std::vector<std::string> names;
    for (const data::TableColumn& c : file.table.columns) names.push_back(c.name);
    bad_input("--by {}: {} has no such column that the network reads{}; there are {}", name, file.table.file,
              did_you_mean(name, names), listed(names));
  }
  if (column->type == data::ColumnType::category || column->type == data::ColumnType::text)
    return [column](std::uint64_t row) {
      const std::uint32_t code = column->codes[row];
      return code == data::TableColumn::no_word ? std::string(missing) : column->words[code];
    };
  if (column->type == data::ColumnType::date)
    return [column](std::uint64_t row) {
      const double days = column->numbers[row];
      return std::isnan(days) ? std::string(missing) : std::to_string(data::parts_of_date(days).year);
    };
  std::set<double> different;
  for (const double x : column->numbers)
    if (different.size() <= few && !std::isnan(x)) different.insert(x);
  if (different.size() > few) return by_quarter(*column);
  return [column](std::uint64_t row) {
    const double x = column->numbers[row];
    return std::isnan(x) ? std::string(missing) : fmt::format("{:g}", x);
  };
}

}  // namespace echelon::cli
