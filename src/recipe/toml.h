#pragma once
// TOML text to a tree of options and back. The text comes from outside: its size, nesting and number of values are
// bounded before anything grows with them. No state; thread-safe.

#include <string>
#include <string_view>

#include "base/options.h"

namespace echelon {

struct TomlLimits {
  std::size_t bytes = 1 << 20;
  int depth = 16;               // tables and lists inside each other
  std::size_t values = 100000;  // in all
};

// Every key gets its line, with `file` as its file. BadInput, naming file and line, for what is not TOML, is too large,
// or is a date or time (no option is one).
Options parse_toml(std::string_view text, const std::string& file, const TomlLimits& limits = {});

// The tree as TOML that parse_toml reads back to the same tree (lines aside). Keys come in alphabetical order, "name",
// "kind" and "type" before others, values before tables.
std::string write_toml(const Options& options);
std::string toml_quoted(const std::string& text);  // "text" with what needs it escaped
// "# text" and the line's end: one line whatever the text holds, for words that come from outside.
std::string toml_comment(std::string_view text);

}  // namespace echelon
