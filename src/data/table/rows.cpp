#include "data/table/rows.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/listed.h"
#include "data/formats/csv.h"
#include "data/table/value.h"

namespace echelon::data {

namespace {

class DelimitedRows : public TableRows {
 public:
  DelimitedRows(const Source& source, const TableFormat& format) : source_(source), rows_(source, format.delimiter) {
    if (!rows_.next(row_)) bad_input("{}: the file is empty", source.name());
    check_count();
    std::set<std::string> taken;
    for (std::size_t i = 0; i < row_.size(); ++i) {
      std::string name = format.header ? std::string(trimmed_cell(row_[i].text)) : std::to_string(i);
      if (name.empty()) name = fmt::format("column_{}", i);
      std::string unique = name;
      for (int again = 2; !taken.insert(unique).second; ++again) unique = fmt::format("{}.{}", name, again);
      if (unique != name) repeated_.push_back(name);
      names_.push_back(std::move(unique));
    }
    waiting_ = !format.header;
  }

  bool next(std::vector<std::string_view>& cells) override {
    for (bool more = waiting_ || rows_.next(row_); more; more = rows_.next(row_)) {
      waiting_ = false;
      if (row_.size() == names_.size()) {
        cells.clear();
        for (const auto& cell : row_) cells.push_back(trimmed_cell(cell.text));
        return true;
      }
      odd_rows_.push_back(fmt::format("line {} has {}", rows_.line(), row_.size()));
      if (odd_rows_.size() > most_named) break;
    }
    if (odd_rows_.empty()) return false;
    bad_input(
        "{}: expected {} cells on every line, but {}: set delimiter if they are separated by something else, or "
        "quote cells that contain it",
        source_.name(), names_.size(), listed(odd_rows_, most_named));
  }
  std::uint64_t line() const override { return rows_.line(); }

 private:
  void check_count() const {
    if (row_.size() > most_columns)
      bad_input("{}: {} columns are too many for a table ({} are possible): convert it to NPY", source_.name(),
                row_.size(), most_columns);
  }

  static constexpr std::size_t most_named = 8;

  const Source& source_;
  CsvRows rows_;
  std::vector<CsvRows::Cell> row_;
  std::vector<std::string> odd_rows_;  // those with another number of cells
  bool waiting_ = false;               // the first row is read already, and no header
};

class JsonRows : public TableRows {
 public:
  explicit JsonRows(const Source& source)
      : source_(source), text_(reinterpret_cast<const char*>(source.at(0, source.size())), source.size()) {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
  }

  bool next(std::vector<std::string_view>& cells) override {
    std::string_view row;
    do {
      if (text_.empty()) return false;
      const std::size_t end = std::min(text_.find('\n'), text_.size());
      row = trimmed_cell(text_.substr(0, end));
      if (row.ends_with('\r')) row.remove_suffix(1);
      text_.remove_prefix(std::min(end + 1, text_.size()));
      ++line_;
    } while (row.empty());
    if (row.size() > most_row_bytes)
      bad_input("{}: line {} has {} bytes; at most {} are possible", source_.name(), line_, row.size(), most_row_bytes);
    const Json value = parse_json(row, fmt::format("{}: line {}", source_.name(), line_), {.depth = 16});
    if (!value.is_object())
      bad_input("{}: line {}: expected a JSON object such as {{\"a\": 1}}, found {:.40}", source_.name(), line_, row);
    for (auto& text : texts_) text.clear();
    if (std::ranges::any_of(value.items(), [&](const auto& item) { return !index_.contains(item.key()); }))
      for (const std::string& key : keys_in_order(row)) column(key);
    for (const auto& [key, item] : value.items()) texts_[column(key)] = text_of_item(item);
    cells.assign(texts_.begin(), texts_.end());
    return true;
  }
  std::uint64_t line() const override { return line_; }

 private:
  static constexpr std::size_t most_row_bytes = 16 << 20;

  // As they stand in the text: the parsed object is sorted.
  static std::vector<std::string> keys_in_order(std::string_view row) {
    std::vector<std::string> keys;
    const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
      if (event == Json::parse_event_t::key && depth == 1) keys.push_back(parsed.get<std::string>());
      return true;
    };
    const Json whole = Json::parse(row.begin(), row.end(), watch);
    return keys;
  }

  std::size_t column(const std::string& key) {
    const auto [it, added] = index_.try_emplace(key, names_.size());
    if (!added) return it->second;
    if (names_.size() == most_columns)
      bad_input("{}: line {}: more than {} columns", source_.name(), line_, most_columns);
    names_.push_back(key);
    texts_.emplace_back();
    return it->second;
  }
  static std::string text_of_item(const Json& item) {
    if (item.is_null()) return "";
    if (item.is_string()) return std::string(trimmed_cell(item.get_ref<const std::string&>()));
    return item.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  const Source& source_;
  std::string_view text_;
  std::uint64_t line_ = 0;
  std::map<std::string, std::size_t> index_;
  std::vector<std::string> texts_;
};

}  // namespace

std::unique_ptr<TableRows> read_rows(const Source& source, const TableFormat& format) {
  if (format.json_lines) return std::make_unique<JsonRows>(source);
  return std::make_unique<DelimitedRows>(source, format);
}

}  // namespace echelon::data
