#include "run/other_meaning.h"

#include <algorithm>

#include "base/error.h"
#include "base/listed.h"
#include "data/description.h"
#include "data/table/kind.h"

namespace echelon {

namespace {

// The features of a table in order, each with what it can be.
std::vector<std::string> columns_of(const data::TableEncoder& table) {
  std::vector<std::string> columns;
  for (const auto& f : table.features())
    columns.push_back(f.categories.empty() ? f.name : fmt::format("{} ({})", f.name, listed(f.categories, 3)));
  return columns;
}

// What two lists have that the other does not, or that they have another order.
std::string difference_of(const std::vector<std::string>& there, const std::vector<std::string>& here) {
  const auto without = [](std::vector<std::string> all, const std::vector<std::string>& others) {
    std::erase_if(all, [&](const std::string& x) { return std::ranges::find(others, x) != others.end(); });
    return all;
  };
  const auto gone = without(there, here), added = without(here, there);
  if (gone.empty() && added.empty()) return "in another order";
  return fmt::format("{} there, {} here", gone.empty() ? "fewer" : listed(gone, 4),
                     added.empty() ? "fewer" : listed(added, 4));
}

}  // namespace

std::optional<RunFolder> run_of_weights(Disk& disk, std::string file) {
  constexpr int most_folders = 3;  // runs/a/checkpoints/step-100/model.safetensors
  for (int i = 0; i < most_folders; ++i) {
    const std::size_t slash = file.find_last_of('/');
    if (slash == std::string::npos) return {};
    file.resize(slash);
    const RunFolder run{file};
    if (disk.exists(run.recipe())) return run;
  }
  return {};
}

std::vector<std::string> notes_on_other_meaning(Disk& disk, const PreparedRun& prepared, const std::string& file) {
  constexpr std::uint64_t most_bytes = 64u << 20;
  const StartSpec& start = *prepared.recipe.start;
  if (!start.load.empty() || !start.skip.empty()) return {};
  const auto run = run_of_weights(disk, file);
  if (!run || !disk.exists(run->samples())) return {};
  const data::DatasetInfo there =
      data::read_description(parse_json(read_text(disk, run->samples(), most_bytes), run->samples()), run->samples());
  const data::DatasetInfo& here = prepared.plain;
  std::vector<std::string> notes;
  if (here.table && disk.exists(run->table())) {
    const data::TableEncoder other = data::read_encoder(disk, run->table());
    const auto before = columns_of(other), now = columns_of(*here.table);
    if (other.feature_width() == here.table->feature_width() && before != now)
      notes.push_back(
          fmt::format("{} read other columns ({}), so what its first layers learnt is about those: model.init.skip = "
                      "[...] begins them anew",
                      run->path, difference_of(before, now)));
  }
  if (here.class_names.size() == there.class_names.size() && here.class_names != there.class_names)
    notes.push_back(
        fmt::format("{} tells other classes apart ({}), so its last layer is about those: model.init.skip = [...] "
                    "begins it anew",
                    run->path, difference_of(there.class_names, here.class_names)));
  return notes;
}

}  // namespace echelon
