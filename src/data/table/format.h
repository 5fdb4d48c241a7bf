#pragma once
// How a table is written down: as delimited text or JSON lines, in which encoding, with which delimiter, decimal
// character and header. Found by looking at the bytes, unless somebody says it. Pure and thread-safe.

#include <optional>
#include <string>

#include "data/encoding.h"

namespace echelon::data {

struct TableFormat {
  bool json_lines = false;  // one JSON object a line; nothing below but `encoding` matters then
  Encoding encoding = Encoding::utf8;
  bool byte_order_mark = false;
  char delimiter = ',';
  char decimal = '.';
  bool header = true;
  bool quotes = false;  // some cell is quoted

  bool operator==(const TableFormat&) const = default;
};
// "CSV: UTF-8, cells separated by semicolons, decimal comma, with a header"
std::string to_string(const TableFormat& format);

// What somebody says instead of leaving it to be found.
struct FormatWishes {
  std::optional<bool> json_lines;
  std::optional<Encoding> encoding;
  std::optional<char> delimiter, decimal;
  std::optional<bool> header;
  char usual_decimal = '.';  // where no cell tells
};

// Looks at all bytes for the encoding, and at the first 1,000 rows for the rest. BadInput for what is no text (bytes of
// zero), an empty file, or a file too large to lie in memory.
TableFormat find_format(const SourcePtr& source, const FormatWishes& wishes = {});

// The source's text as UTF-8: itself, or a copy of what was in another encoding.
SourcePtr as_utf8(const SourcePtr& source, const TableFormat& format);

}  // namespace echelon::data
