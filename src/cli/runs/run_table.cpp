#include "cli/runs/run_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace echelon::cli {

namespace {

bool is_number(const std::string& cell) {
  return cell == "-" || (!cell.empty() && cell.find_first_not_of("0123456789.+-e%") == std::string::npos);
}

}  // namespace

std::string TextTable::text() const {
  const std::size_t columns = rows_[0].size();
  std::vector<int> widths(columns, 0);
  std::vector<char> right(columns, 1);
  for (std::size_t r = 0; r < rows_.size(); ++r)
    for (std::size_t c = 0; c < columns; ++c) {
      widths[c] = std::max(widths[c], display_width(rows_[r][c]));
      if (r > 0 && !is_number(rows_[r][c])) right[c] = 0;
    }
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
