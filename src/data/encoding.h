#pragma once
// How the characters of a text are written as bytes, and the same text as UTF-8. Pure and thread-safe.

#include <cstdint>
#include <string_view>

#include "data/files/source.h"

namespace echelon::data {

enum class Encoding : std::uint8_t { utf8, latin1, utf16 };
std::string_view name_of(Encoding encoding);

// Whether all of it is UTF-8, without code points that are written too long or do not exist.
bool is_utf8(std::string_view text);

// UTF-16 if it begins with a byte order mark of that, UTF-8 if all of it is, else Latin-1.
Encoding find_encoding(std::string_view text);

// The source's text as UTF-8: itself, or a copy of what is in another encoding, without its byte order mark. The source
// lies in memory. BadInput for what is no UTF-16.
SourcePtr as_utf8(const SourcePtr& source, Encoding encoding);

}  // namespace echelon::data
