#include "cli/runs/run_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "cli/folded.h"

namespace echelon::cli {

namespace {

bool is_number(const std::string& cell) {
  return cell == "-" || (!cell.empty() && cell.find_first_not_of("0123456789.+-e%") == std::string::npos);
}

}  // namespace

std::vector<int> TextTable::widths() const {
  std::vector<int> widths(rows_[0].size(), 0);
  for (const auto& row : rows_)
    for (std::size_t c = 0; c < widths.size(); ++c) widths[c] = std::max(widths[c], display_width(row[c]));
  return widths;
}

int TextTable::width() const {
  int sum = -2;
  for (const int w : widths()) sum += w + 2;
  return sum;
}

void TextTable::drop(std::size_t column) {
  for (auto& row : rows_) row.erase(row.begin() + static_cast<std::ptrdiff_t>(column));
}

void TextTable::drop_empty_columns() {
  for (std::size_t c = rows_[0].size(); c-- > 1;)
    if (std::all_of(rows_.begin() + 1, rows_.end(), [&](const auto& row) { return row[c] == "-"; })) drop(c);
}

TextTable TextTable::transposed() const {
  TextTable other({});
  other.rows_.assign(rows_[0].size(), {});
  for (const auto& row : rows_)
    for (std::size_t c = 0; c < row.size(); ++c) other.rows_[c].push_back(row[c]);
  return other;
}

std::string TextTable::text(int columns, std::initializer_list<const char*> spare) const {
  TextTable fitting = *this;
  std::string left_out;
  for (const char* name : spare) {
    if (fitting.width() <= columns) break;
    const auto at = std::ranges::find(fitting.rows_[0], name);
    if (at == fitting.rows_[0].end()) continue;
    fitting.drop(static_cast<std::size_t>(at - fitting.rows_[0].begin()));
    left_out += (left_out.empty() ? "" : ", ") + std::string(name);
  }
  if (left_out.empty()) return fitting.text();
  return fitting.text() + folded(fmt::format("no room here for: {} (--json has all)\n", left_out), columns, 2);
}

std::string TextTable::text() const {
  const std::size_t columns = rows_[0].size();
  const std::vector<int> widths = this->widths();
  std::vector<char> right(columns, 1);
  for (std::size_t r = 1; r < rows_.size(); ++r)
    for (std::size_t c = 0; c < columns; ++c)
      if (!is_number(rows_[r][c])) right[c] = 0;
  right[0] = 0;
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t c = 0; c < columns; ++c) {
      const std::string blanks(static_cast<std::size_t>(widths[c] - display_width(row[c])), ' ');
      line += (c ? "  " : "") + (right[c] ? blanks + row[c] : row[c] + blanks);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string summary_cell(const Json& summary, const char* key, const char* format) {
  if (!summary.is_object() || !summary.contains(key) || !summary[key].is_number()) return "-";
  return fmt::format(fmt::runtime(format), summary[key].get<double>());
}

std::string brief(const std::string& value) { return display_width(value) > 22 ? fit(value, 22) : value; }

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i)
    out += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
  return out;
}

void write_named_file(Disk& disk, const std::string& path, std::string_view text) {
  write_named_file(disk, path, std::as_bytes(std::span(text)));
}

void write_named_file(Disk& disk, const std::string& path, std::span<const std::byte> bytes) try {
  write_file_atomically(disk, path, bytes);
} catch (const DiskError& problem) {
  bad_input("{} cannot be written ({}); name another file", path, problem.what());
}

}  // namespace echelon::cli
