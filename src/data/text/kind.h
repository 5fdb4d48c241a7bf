#pragma once
// A text as a kind of data: the keys of its table, and what they open.

#include "data/kinds.h"

namespace echelon::data {

OpenSplit read_text_kind(OptionReader& table, const DataPath& where);

}  // namespace echelon::data
