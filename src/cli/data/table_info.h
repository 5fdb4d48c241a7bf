#pragma once
// A table's columns on the terminal, or as JSON: the part of `echelon data info` that is about tables.

#include <nlohmann/json.hpp>

#include "data/table/describe.h"

namespace echelon::cli {

std::string table_text(const data::TableSummary& summary);
nlohmann::ordered_json table_json(const data::TableSummary& summary);

}  // namespace echelon::cli
