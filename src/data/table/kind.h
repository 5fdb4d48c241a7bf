#pragma once
// kind = "table": a file of rows and columns of any type, or a directory with train.csv and test.csv (.tsv, .jsonl, and
// these gzipped). docs/data.md has the keys.

#include "data/kinds.h"
#include "data/table/open_table.h"

namespace echelon::data {

// The keys of a [data] table of this kind; problems are added to the reader's.
TableOptions read_table_options(OptionReader& table);

// What TableEncoder::to_json wrote, as a run's folder keeps it. BadInput if it is something else.
TableEncoder read_encoder(Disk& disk, const std::string& path);

OpenSplit read_table_kind(OptionReader& table, const DataPath& where);

// The file of a split in a directory; empty if there is none.
std::string table_in_directory(Disk& disk, const std::string& directory, const std::string& split);
// Whether a file of this name is taken for a table.
bool is_table_name(std::string_view name);

}  // namespace echelon::data
