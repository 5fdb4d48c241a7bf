#include "data/table/describe.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace echelon::data {

namespace {

constexpr std::size_t histogram_bins = 12, most_top = 12;

void summarise_numbers(ColumnSummary& s, const TableColumn& column) {
  std::vector<double> numbers;
  for (const double x : column.numbers)
    if (!std::isnan(x)) numbers.push_back(x);
  if (numbers.empty()) return;
  std::ranges::sort(numbers);
  s.least = numbers.front(), s.most = numbers.back();
  const std::size_t n = numbers.size();
  s.median = n % 2 == 1 ? numbers[n / 2] : (numbers[n / 2 - 1] + numbers[n / 2]) / 2;
  for (const double x : numbers) s.mean += x / static_cast<double>(n);
  double squares = 0;
  for (const double x : numbers) squares += (x - s.mean) * (x - s.mean);
  s.deviation = std::sqrt(squares / static_cast<double>(n));
  // Few whole numbers have a bar each, without gaps between them.
  const double span = s.most - s.least;
  const bool few = span < histogram_bins && std::ranges::all_of(numbers, [](double x) { return x == std::floor(x); });
  s.histogram.assign(few ? static_cast<std::size_t>(span) + 1 : histogram_bins, 0);
  const double width = few ? 1 : span / histogram_bins;
  for (const double x : numbers) {
    const double bin = width > 0 && std::isfinite(width) ? std::floor((x - s.least) / width) : 0;
    ++s.histogram[static_cast<std::size_t>(std::clamp(bin, 0.0, static_cast<double>(s.histogram.size() - 1)))];
  }
}

void summarise_words(ColumnSummary& s, const ColumnProfile& profile) {
  s.top.assign(profile.values.begin(), profile.values.end());
  std::ranges::stable_sort(s.top, std::greater{}, [](const auto& entry) { return entry.second; });
  if (s.top.size() > most_top) s.top.resize(most_top);
  if (s.type == ColumnType::category)
    for (const auto& [word, count] : s.top) s.histogram.push_back(count);
}

}  // namespace

TableSummary describe_table(const SourcePtr& given, const TableOptions& options) {
  const TableFormat format = find_format(given, options.format);
  const SourcePtr source = as_utf8(given, format);
  const TableProfile profile = profile_table(*source, format, options.missing_values);
  TableSummary summary{.file = given->name(), .format = format, .rows = profile.rows};
  TableSchema schema;
  try {
    schema = make_schema(profile, options);
    summary.task = schema.task;
    summary.notes = schema.notes;
  } catch (const BadInput& e) {  // what is there can be shown all the same
    summary.notes.push_back(e.what());
    for (const ColumnProfile& c : profile.columns)
      schema.columns.push_back({.name = c.name, .type = type_of(c), .date_order = date_order_of(c)});
  }
  std::vector<WantedColumn> wanted;
  for (std::size_t c = 0; c < profile.columns.size(); ++c) {
    const ColumnType type = type_of(profile.columns[c]);
    if (type != ColumnType::category && type != ColumnType::text)
      wanted.push_back({profile.columns[c].name, type, schema.columns[c].date_order, false});
  }
  const Table table = read_table(*source, format, wanted, options.missing_values);
  for (std::size_t c = 0; c < profile.columns.size(); ++c) {
    const ColumnProfile& p = profile.columns[c];
    ColumnSummary s{.name = p.name,
                    .type = type_of(p),
                    .role = schema.columns[c].role,
                    .reason = schema.columns[c].reason,
                    .rows = p.rows(),
                    .missing = p.missing,
                    .distinct = p.distinct(),
                    .many = p.many};
    if (const TableColumn* const column = table.find(p.name))
      summarise_numbers(s, *column);
    else
      summarise_words(s, p);
    summary.columns.push_back(std::move(s));
  }
  return summary;
}

std::string date_text(double days) {
  const DateParts p = parts_of_date(days);
  return fmt::format("{:04}-{:02}-{:02}", p.year, p.month, p.day);
}

std::string bars(std::span<const std::uint64_t> counts) {
  const std::uint64_t most = counts.empty() ? 0 : std::ranges::max(counts);
  std::string out;
  for (const std::uint64_t count : counts) {
    if (count == 0) {
      out += ' ';
      continue;
    }
    const auto height = static_cast<unsigned>((static_cast<double>(count) * 8 + static_cast<double>(most) - 1) /
                                              static_cast<double>(most));
    out += "\xE2\x96";  // from U+2581, an eighth of a block, to U+2588, a whole one
    out += static_cast<char>(0x80 + std::clamp(height, 1u, 8u));
  }
  return out;
}

}  // namespace echelon::data
