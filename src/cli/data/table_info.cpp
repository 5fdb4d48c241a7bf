#include "cli/data/table_info.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace echelon::cli {

namespace {

using data::ColumnSummary;
using data::ColumnType;
using Role = data::SchemaColumn::Role;

double share_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string value_text(const ColumnSummary& c, double value) {
  if (c.type == ColumnType::date) return data::date_text(value);
  constexpr double exact = 1e15, million = 1e6;  // whole numbers below `exact` are shown as they are
  const double size = std::abs(value);
  return size < exact && (value == std::floor(value) || size >= million) ? fmt::format("{:.0f}", value)
                                                                         : fmt::format("{:.6g}", value);
}

std::string range_text(const ColumnSummary& c) {
  if (c.type == ColumnType::boolean && c.has_range()) return fmt::format("yes in {:.0f} %", 100 * c.mean);
  if (c.has_range())
    return fmt::format("{} to {}, median {}", value_text(c, c.least), value_text(c, c.most), value_text(c, c.median));
  std::string out = fmt::format("{}{} values", c.many ? "over " : "", c.distinct);
  if (c.type != ColumnType::category) return out;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, c.top.size()); ++i)
    out += fmt::format("{} {:.20} {:.0f} %", i == 0 ? ":" : ",", c.top[i].first,
                       100 * share_of(c.top[i].second, c.rows - c.missing));
  return out;
}

std::string role_text(const ColumnSummary& c) {
  if (c.role == Role::target) return "to predict";
  return c.role == Role::left_out ? "left out: " + c.reason : "";
}

}  // namespace

std::string table_text(const data::TableSummary& s) {
  std::string out = fmt::format("{}: {}\n{} rows, {} columns", s.file, to_string(s.format), s.rows, s.columns.size());
  if (s.task != data::TableTask::none) out += fmt::format("; as it stands, a task to {}", name_of(s.task));
  out += "\n\n";
  int names = 6, ranges = 5;
  for (const ColumnSummary& c : s.columns) {
    names = std::clamp(display_width(c.name), names, 24);
    ranges = std::clamp(display_width(range_text(c)), ranges, 48);
  }
  out += fmt::format("{} {:<9}{:>8}  {} {:<12}\n", fit("column", names), "type", "missing", fit("range", ranges),
                     "histogram");
  for (const ColumnSummary& c : s.columns) {
    const std::string missing = c.missing == 0 ? "-" : fmt::format("{:.1f} %", 100 * share_of(c.missing, c.rows));
    std::string line = fmt::format("{} {:<9}{:>8}  {} {} {}", fit(c.name, names), name_of(c.type), missing,
                                   fit(range_text(c), ranges), fit(data::bars(c.histogram), 12), role_text(c));
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  for (const std::string& note : s.notes) out += fmt::format("\n{}\n", note);
  return out;
}

nlohmann::ordered_json table_json(const data::TableSummary& s) {
  nlohmann::ordered_json j{{"data", s.file},
                           {"samples", s.rows},
                           {"format",
                            {{"kind", s.format.json_lines ? "jsonl" : "delimited"},
                             {"encoding", name_of(s.format.encoding)},
                             {"delimiter", std::string(1, s.format.delimiter)},
                             {"decimal", std::string(1, s.format.decimal)},
                             {"header", s.format.header},
                             {"quotes", s.format.quotes}}},
                           {"task", name_of(s.task)},
                           {"columns", nlohmann::ordered_json::array()},
                           {"notes", s.notes}};
  for (const ColumnSummary& c : s.columns) {
    const char* const role = c.role == Role::target ? "target" : c.role == Role::left_out ? "left_out" : "feature";
    nlohmann::ordered_json column{{"name", c.name},
                                  {"type", name_of(c.type)},
                                  {"role", role},
                                  {"missing", c.missing},
                                  {"missing_share", share_of(c.missing, c.rows)}};
    if (!c.reason.empty()) column["reason"] = c.reason;
    if (c.has_range()) {
      column["least"] = c.least, column["most"] = c.most, column["mean"] = c.mean;
      column["deviation"] = c.deviation, column["median"] = c.median;
    } else {
      column["distinct"] = c.distinct;
      for (const auto& [word, count] : c.top) column["top"].push_back({{"value", word}, {"count", count}});
    }
    column["histogram"] = c.histogram;
    j["columns"].push_back(std::move(column));
  }
  return j;
}

}  // namespace echelon::cli
