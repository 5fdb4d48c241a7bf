#include "cli/runs/run_samples.h"

#include "data/description.h"
#include "data/table/encoder.h"
#include "data/vocabulary.h"
#include "recipe/toml.h"

namespace echelon::cli {

namespace {

constexpr std::uint64_t most_kept_bytes = 1u << 30;

std::string file_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

// Without its encoder or vocabulary a network would answer from numbers that mean something else.
void expect_beside(Disk& disk, const RunFolder& folder, const Json& samples) {
  if (!samples.contains("beside")) return;
  for (const std::string& path : {folder.table(), folder.tokens()})
    for (const Json& name : samples["beside"])
      if (name == file_name(path) && !disk.exists(path)) bad_input("{} is missing: copy the whole folder", path);
}

}  // namespace

void keep_samples(Disk& disk, const RunFolder& folder, const data::DatasetInfo& plain) {
  if (plain.table && !disk.exists(folder.table()))
    write_file_atomically(disk, folder.table(), plain.table->to_json().dump(1) + "\n");
  if (plain.vocabulary && !disk.exists(folder.tokens()))
    write_file_atomically(disk, folder.tokens(), plain.vocabulary->to_text());
  // The last one: if it is there, so are the others. Names of classes may be those of files, so any bytes.
  if (disk.exists(folder.samples())) return;
  Json samples = data::describe(plain);
  samples["beside"] = Json::array();
  if (plain.table) samples["beside"].push_back(file_name(folder.table()));
  if (plain.vocabulary) samples["beside"].push_back(file_name(folder.tokens()));
  write_file_atomically(disk, folder.samples(), samples.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::optional<data::DatasetInfo> kept_samples(Disk& disk, const RunFolder& folder) {
  if (!disk.exists(folder.samples())) return {};
  const auto json = [&](const std::string& path) { return parse_json(read_text(disk, path, most_kept_bytes), path); };
  const Json samples = json(folder.samples());
  data::DatasetInfo info = data::read_description(samples, folder.samples());
  expect_beside(disk, folder, samples);
  if (disk.exists(folder.table()))
    info.table = std::make_shared<data::TableEncoder>(json(folder.table()), folder.table());
  if (disk.exists(folder.tokens()))
    info.vocabulary = std::make_shared<data::Vocabulary>(
        data::Vocabulary::from_text(read_text(disk, folder.tokens(), most_kept_bytes)));
  return info;
}

std::vector<std::string> with_kept_encoder(Disk& disk, const RunFolder& folder) {
  if (!disk.exists(folder.table())) return {};
  return {"data.encoder=" + toml_quoted(folder.table())};
}

}  // namespace echelon::cli
