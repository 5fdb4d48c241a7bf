#include "cli/run_encoder.h"

#include "data/table/encoder.h"
#include "recipe/toml.h"

namespace echelon::cli {

void keep_encoder(Disk& disk, const RunFolder& folder, const data::DatasetInfo& train) {
  if (train.table && !disk.exists(folder.table()))
    write_file_atomically(disk, folder.table(), train.table->to_json().dump(1) + "\n");
}

std::vector<std::string> with_kept_encoder(Disk& disk, const RunFolder& folder) {
  if (!disk.exists(folder.table())) return {};
  return {"data.encoder=" + toml_quoted(folder.table())};
}

}  // namespace echelon::cli
