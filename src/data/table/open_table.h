#pragma once
// From a file to samples of a table: its rows first, so that they can be cut into parts, then the rows of a part,
// encoded as the training part says (data/table/encoder.h).

#include "data/table/encoder.h"

namespace echelon::data {

// A table that was read, with what its columns are.
struct TableFile {
  TableOptions options;
  TableSchema schema;
  Table table;
  std::shared_ptr<const TableEncoder> encoder =
      nullptr;  // one that was fitted before; null: fitted on the training part
};
using TableFilePtr = std::shared_ptr<const TableFile>;

// BadInput with all that is wrong.
TableFilePtr read_table_file(const SourcePtr& source, const TableOptions& options);
// The same with an encoder that was fitted before: it says what the columns are.
TableFilePtr read_table_file(const SourcePtr& source, const TableOptions& options,
                             std::shared_ptr<const TableEncoder> encoder);
// Another file with the columns of `train`: their types and classes are those that it has.
TableFilePtr read_table_file_like(const SourcePtr& source, const TableFilePtr& train);

// The rows that have a target, as a data set that can be cut: "row" i32[] and "label" i32[] or "target" f32[m], both as
// they stand in the file. Its info().table_rows is the file.
DatasetPtr rows_of_table(TableFilePtr file);

// The samples of `part`, encoded by what `train` says. Both come from rows_of_table, cut or not, of the same file or of
// two. `name` is the part's, for notes.
DatasetPtr encode_rows(const Dataset& train, const Dataset& part, const std::string& name);

}  // namespace echelon::data
