#include "cli/answers/column_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "base/listed.h"
#include "base/text.h"
#include "data/files/source.h"
#include "data/table/profile.h"

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

// The texts of a column's rows.
std::function<std::string(std::uint64_t)> texts_of(const data::TableColumn* column) {
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

// The file's table again, with this column alone.
data::Table read_column(Disk& disk, const data::TableFile& file, const std::string& name) {
  const data::TableFormat& format = file.table.format;
  const data::SourcePtr source = data::as_utf8(data::open_source(disk, file.table.file), format);
  const data::TableProfile profile = data::profile_table(*source, format, file.options.missing_values);
  const auto found = std::ranges::find(profile.columns, name, &data::ColumnProfile::name);
  if (found == profile.columns.end()) {
    std::vector<std::string> names;
    for (const data::ColumnProfile& c : profile.columns) names.push_back(c.name);
    bad_input("--by {}: {} has no such column{}; there are {}", name, file.table.file, did_you_mean(name, names),
              listed(names));
  }
  const data::ColumnType type = data::type_of(*found);
  const data::WantedColumn wanted{.name = name,
                                  .type = type == data::ColumnType::text ? data::ColumnType::category : type,
                                  .date_order = data::date_order_of(*found)};
  return data::read_table(*source, format, std::span(&wanted, 1), file.options.missing_values);
}

}  // namespace

std::function<std::string(std::uint64_t)> value_texts(Disk& disk, const data::TableFile& file,
                                                      const std::string& name) {
  if (const data::TableColumn* read = file.table.find(name)) return texts_of(read);
  const auto own = std::make_shared<const data::Table>(read_column(disk, file, name));
  const auto row_at = std::make_shared<std::unordered_map<std::uint32_t, std::uint64_t>>();
  for (std::uint64_t row = 0; row < own->rows; ++row) row_at->emplace(own->lines[row], row);
  return [own, row_at, &lines = file.table.lines, text = texts_of(own->find(name))](std::uint64_t row) {
    return text(row_at->at(lines[row]));
  };
}

}  // namespace echelon::cli
