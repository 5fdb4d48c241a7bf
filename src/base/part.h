#pragma once
// A part that people choose by name: a rule, an exchange, a sync, a codec, an order. A part is one row: what it is
// called, what it does, its settings with their defaults, and the function that makes it from a table of options. The
// row stands in the part's own file, beside the maker; a table of one room lists the rows. What a recipe may say, what
// `echelon systems parts` prints and what is made of it come from the same row.
//
// Plain data; thread-safe.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"

namespace echelon {

struct Setting {
  std::string name;
  std::string usual;  // the default as TOML writes it, or in words where it is derived
  std::string about;
};

struct PartInfo {
  std::string name, about;
  std::vector<Setting> settings;
};

// `Maker`: a function of OptionReader&, which reads the settings (but not `name`) and adds what is wrong with them to
// the reader's problems.
template <typename Maker>
struct Part : PartInfo {
  Maker make;
};

// nullptr if no row has that name.
template <typename Row>
const Row* find_row(const std::vector<Row>& rows, std::string_view name) {
  const auto it = std::ranges::find(rows, name, [](const Row& row) { return std::string_view(row.name); });
  return it == rows.end() ? nullptr : &*it;
}

template <typename Row>
std::vector<std::string> names_of(const std::vector<Row>& rows) {
  std::vector<std::string> names;
  for (const Row& row : rows) names.push_back(row.name);
  return names;
}

template <typename Row>
std::vector<PartInfo> infos_of(const std::vector<Row>& rows) {
  return {rows.begin(), rows.end()};
}

// The row that the table's `name` asks for; that of `usual` if it names none, or (with a problem) an unknown one.
template <typename Row>
const Row& chosen_row(const std::vector<Row>& rows, OptionReader& table, const std::string& usual) {
  const Row* row = find_row(rows, table.choice("name", usual, names_of(rows)));
  return row ? *row : *find_row(rows, usual);
}

}  // namespace echelon
